// A table's columns opened on an executor, wherever their files' bytes are read from, and queries of them.
#pragma once

#include "libs/columns/group_bodies.hpp"
#include "libs/columns/zone_bodies.hpp"
#include "libs/media/media_options.hpp"
#include "libs/volume/volume_entry.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::columns {

/// Bytes of a file that are opened as one: all of it, or what one column has there.
struct extent {
  std::string path;
  u64 offset = 0;
  u64 bytes = 0;
  std::shared_ptr<volumes::volume_file const> stored{};  ///< where the file is on a volume; `path` is its name then
};

/// Where the values of one piece of a column lie.
struct piece_place {
  u32 extent = 0;
  u64 offset = 0;  ///< of value 0 in the extent
  u32 first_bit = 0;
  u64 bytes = 0;  ///< that may be read from there
  bool nullable = false;
  u32 validity_extent = 0;
  u64 validity_offset = 0;
  u32 validity_first_bit = 0;
};

struct column_layout {
  std::string name;
  encoding how = encoding::int64;
  u32 packed_bits = 0;
  u64 base = 0;
  double divisor = 0;
  std::vector<piece_place> pieces;  ///< of each piece of the table
};

struct table_layout {
  std::vector<extent> extents;
  std::vector<u64> pieces;  ///< rows of each
  std::vector<column_layout> columns;
};

/// Values that a zone must overlap to have rows that meet the condition: between two sortable ones, in a column.
struct zone_bound {
  u32 column = 0;
  std::int64_t low = 0, high = 0;
};

/// Values of rows in an executor's memory, a column behind the other.
struct kept_columns {
  buffer<u64> values;
  buffer<u8> valid;
};

/// One of these columns. In this and the following `of` is the table; it comes first, so that it goes last.
struct kept_rows {
  std::shared_ptr<void const> of;
  std::shared_ptr<kept_columns const> in;
  u64 column = 0;
  u64 rows = 0;

  u64 const* values() const { return in->values.data() + column * rows; }
  u8 const* valid() const { return in->valid.data() + column * rows; }
};

/// Where the rows of another table lie in its lookups.
struct kept_keys {
  std::shared_ptr<void const> of;
  bool by_value = false;     ///< a key's place is its distance from `low`; else a slot of a hash table
  u64 low = 0;               ///< of slots 0
  u64 places = 0;            ///< of slots a power of two
  buffer<u64> place_of;      ///< of each row; ~0: it has no key
  std::optional<u64> again;  ///< a key that stands more than once
};

/// A column of another table, for `lookup` and `find` of this one's programs.
struct kept_lookup {
  std::shared_ptr<void const> of;
  buffer<u64> values;
  buffer<u8> valid;
};

/// A program as it comes from the caller.
struct query_program {
  std::vector<instruction> dense, sparse;
  u32 constants = 0, filter = 0;  ///< of dense
  u32 sparse_filter = 0;          ///< where the rest begins in sparse
  u32 condition = 0;
  std::vector<u16> scanned;
  struct note {
    u16 column;
    u8 from;  ///< register that has the column at the end of the condition
    bool number;
  };
  std::vector<note> notes;
  std::vector<zone_bound> bounds;
  std::vector<zone_bound> ranges;     ///< of different columns: the condition is these, and `residual`
  std::vector<instruction> residual;  ///< the rest of the condition by itself; none: there is none, or there are no ranges
  u32 residual_condition = 0;
  struct table {
    std::vector<u64> values;
    std::vector<u8> valid;
    std::shared_ptr<kept_lookup> kept;  ///< instead
  };
  std::vector<table> tables;
};

/// One launch over the rows of a table.
struct pass_account {
  char const* what = "";  ///< aggregate, mark, emit, take or group
  bool is_compiled = false;
  double seconds = 0;
};

struct query_account {
  double set_up_seconds = 0, run_seconds = 0, seconds = 0;
  u64 zones = 0, zones_skipped = 0, rows_met = 0;
  u32 errors = 0;       ///< of row_error
  u64 bytes_moved = 0;  ///< into the cache; nothing where there is none
  std::vector<pass_account> passes;
};

/// Who compiles passes of a table's queries for its executor (compiled_source.hpp). Its functions are called in the turn of the
/// query, and another pass of the same source may come at any time.
class query_compiler {
 public:
  virtual ~query_compiler() = default;
  /// The image of a source for a GPU; empty: there is none, or none yet. What it throws ends the query.
  virtual std::vector<std::byte> compiled(std::string const& source, bool is_resident) = 0;
  /// A pass took so long without, at least what compile_with says; `source` is what the next one of the query will be.
  virtual void interpreted(std::string const& source, bool is_resident, double seconds) = 0;
  /// An image could not be loaded. The source is interpreted from now on.
  virtual void refused(std::string const& source, std::string const& why) = 0;
};

struct aggregates {
  std::vector<accumulator> values;  ///< [groups][aggregates]
  query_account account;
};
struct results {
  std::vector<u64> values;  ///< [outputs][rows]
  std::vector<u8> valid;
  u64 rows = 0;
  query_account account;
};

/// A sum of groups by any keys. `counted`: how many values it has is counted beside it; of rows and counts it is all there is.
struct counted_aggregate {
  aggregate of;
  bool counted = true;
};
/// Groups in the order of their keys, the first word before the others, as signed numbers.
struct key_groups {
  /// Of the host, [stride][groups]: words of the key; then for each aggregate its value, of integer sums two words, and its
  /// count.
  buffer<u64> words;
  u64 groups = 0, stride = 0;
  u64 slots = 0;  ///< of the table that they were found with
  query_account account;
};

/// What a query that reads a column only where its condition holds needs of it.
struct column_touch {
  u64 least_bytes = 0;  ///< of the values themselves
  u64 sectors = 0;      ///< of 32 bytes of its files that these lie in
  u64 lines = 0;        ///< of `line_bytes` of its files, likewise
};
inline constexpr u64 sector_bytes = 32;

/// Thread-safe: queries take turns.
class column_table {
 public:
  /// Throws penstock::error: bad_input for options that cannot be, files that are too short; world.
  column_table(table_layout layout, media::media_options const& options);
  ~column_table();

  u64 rows() const { return rows_; }
  std::string device() const;
  std::string executor_name() const;
  /// 90 for compute capability 9.0; 0: of a CPU.
  u32 architecture() const;

  /// From now on; what is interpreted in less than `least_seconds` stays so. REQUIRES: of a GPU's executor, the compiler makes
  /// images for it.
  void compile_with(std::shared_ptr<query_compiler> compiler, double least_seconds);

  /// `rows_met` is of the first aggregate of kind `rows`. `line_aware` false: an ablation.
  aggregates aggregate_rows(query_program const& program, std::vector<aggregate> const& wanted, u32 groups,
                            std::optional<u32> key, bool line_aware);
  /// By the values of registers, none of which is null or -1, as many as they are; those in all ranges are left. REQUIRES: rows
  /// and counts are counted. Throws bad_input where the groups do not fit the executor's memory.
  key_groups group_rows(query_program const& program, std::vector<counted_aggregate> const& wanted, std::vector<u8> const& keys,
                        std::vector<slot_range> const& ranges, bool line_aware);
  /// Values of registers of the rest's program for each row that meets the condition, in the table's order.
  results select_rows(query_program const& program, std::vector<u8> const& registers);
  /// The same for rows by their numbers in the table. Throws bad_input for one that it does not have.
  results take_numbered(query_program const& program, std::vector<u8> const& registers, std::vector<u64> const& numbers);
  /// Of columns, for the rows that meet a program's condition. Nothing but the condition is evaluated.
  std::vector<column_touch> touched(query_program const& program, std::vector<u32> const& columns, u64 line_bytes);
  /// What select_rows gives, left where kernels reach it; none: rows had something wrong. Tables of the same kind of executor
  /// share it.
  std::vector<std::shared_ptr<kept_rows>> select_kept(query_program const& program, std::vector<u8> const& registers);
  std::shared_ptr<kept_rows> upload(std::span<u64 const> values, std::span<u8 const> valid);
  /// Where rows lie by their keys.
  std::shared_ptr<kept_keys> place(std::shared_ptr<kept_rows> const& rows);
  /// Where they lie, as given. Throws bad_input for a place beyond `count` that is not ~0: none.
  std::shared_ptr<kept_keys> place_at(std::span<u64 const> places, u64 count);
  /// A column at the places of its rows' keys, the others null. Throws bad_input where they are not as many.
  std::shared_ptr<kept_lookup> lookup(std::shared_ptr<kept_keys> const& keys, std::shared_ptr<kept_rows> const& rows);
  /// The least and the greatest integer of a column; none where all are null.
  std::optional<std::pair<std::int64_t, std::int64_t>> extremes(std::shared_ptr<kept_lookup> const& lookup);
  /// Whether a query that names the column in a condition has left a zone map.
  bool has_zone_map(u32 column) const;

  struct state;

 private:
  std::shared_ptr<state> state_;
  u64 rows_ = 0;
};

}  // namespace penstock::columns
