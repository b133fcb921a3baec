// What the launches over rows are given.
#pragma once

#include "penstock/array/writable_view.hpp"
#include "penstock/rows/row_array.hpp"

#include <memory>
#include <span>

namespace penstock::rows {

/// How a launch went, in memory that host and kernels share.
struct row_report {
  u64 first_bad = ~0ull;  ///< lowest position of an index outside of the array
  u32 failure = 0;        ///< packed status of a row that could not be stored
};

/// Which slots of kept rows lie in this process's memory.
struct own_slots {
  u64 everywhere = ~0ull;  ///< slots below
  u64 begin = 0, end = 0;  ///< and these

  PENSTOCK_FN bool has(u64 slot) const { return slot < everywhere || (slot >= begin && slot < end); }
};

/// Rows that are kept next to the kernels beside the place that all of them have.
struct kept_rows {
  u32 const* slots = nullptr;  ///< of each row one more than where it lies among those that are kept, 0: it is none; or null
  u64 address = 0;

  static constexpr u64 none = ~0ull;
  PENSTOCK_FN u64 place_of(u64 row) const { return slots[row] != 0 ? slots[row] - 1 : none; }
  /// Of a row: its own, or that among `others`, which begin at a multiple of the same pitch.
  PENSTOCK_FN u64 address_of(u64 row, u64 others, u64 pitch) const {
    if (slots != nullptr) {
      const u32 slot = slots[row];
      if (slot != 0) return address + (slot - 1) * pitch;
    }
    return others + row * pitch;
  }
};

/// Where the rows lie: in memory, or behind a cache.
struct row_place {
  u64 rows = 0;
  u64 row_bytes = 0;
  u64 address = 0;  ///< 0: behind a cache
  line_reader reader;
  u64 origin = 0;  ///< of row 0 in its dataset
  u64 pitch = 0;   ///< from one row to the next
  u64 bytes = 0;   ///< from row 0 on
  kept_rows kept;

  /// The same for what a list takes of it. Throws bad_input where a grid or a part reaches beyond it.
  row_place seen_by(row_list const& list, char const* operation) const;
};

/// Whether all rows of a list lie side by side, in its order.
bool is_run(row_list const& list, row_place const& place);

struct row_launch {
  row_list list;
  row_report* report = nullptr;
  void* stream = nullptr;
  u32 units = 0;    ///< SMs at most; 0: all
  u32 helpers = 0;  ///< sorted gathers of rows in host memory: threads of the CPU that share them
};

/// One of several gathers that share a launch. REQUIRES: from.address != 0.
struct joined_gather {
  row_list list;
  row_report* report = nullptr;
  row_place from;
  void* out = nullptr;
};
inline constexpr u32 most_joined = 16;
inline constexpr u64 most_joined_row = 4096;  ///< a group has a whole row

// Each returns when its kernels are on the stream (CUDA) or done (CPU). REQUIRES: a place as `seen_by` the list.
void launch_gather(executor& on, row_launch const& how, row_place const& from, void* out);
/// Adds how many rows of the list are kept to taken[0], and how many of those in memory of others to taken[1].
void launch_count_kept(executor& on, row_launch const& how, row_place const& from, own_slots const& own, u64* taken);
/// CUDA. REQUIRES: most_joined at most. `how` has a stream and units, and no list.
void launch_joined(executor& on, row_launch const& how, std::span<joined_gather const> gathers);
/// `awaits`: it is over when the lines are there, not when they are asked for.
void launch_prefetch(executor& on, row_launch const& how, row_place const& from, bool awaits);
void launch_scatter(executor& on, row_launch const& how, row_place const& to, void const* values);
void launch_add(executor& on, row_launch const& how, row_place const& to, number_kind kind, void const* values);

/// CUDA: what calls on streams need beside kernels.
class row_device {
 public:
  virtual ~row_device() = default;
  /// As launch_gather, in the order of the rows; captured, the graph has the room to sort in. REQUIRES: fewer than 2^32 - 1
  /// rows.
  virtual void sorted_gather(executor& on, row_launch const& how, row_place const& from, void* out) = 0;
  /// By the copy engines. Waits for the list. REQUIRES: from.address != 0; the stream is not captured.
  virtual void copied_gather(row_launch const& how, row_place const& from, void* out) = 0;
  /// One transfer of the copy engines. REQUIRES: the stream is not captured.
  virtual void copy(void* to, void const* from, u64 bytes, void* stream) = 0;
  /// Of executor/kept_for_graphs.hpp.
  virtual bool is_captured(void* stream) = 0;
  virtual void keep_for_graph(void* stream, std::shared_ptr<void> kept) = 0;
  /// Waits for the stream.
  virtual void finish(void* stream) = 0;
  /// A place on the stream that can be waited for.
  virtual void* mark(void* stream) = 0;
  virtual void await(void* mark) = 0;
  virtual bool is_done(void* mark) = 0;
  virtual void order_before(void* mark, void* stream) = 0;
  virtual void forget(void* mark) noexcept = 0;
  /// A stream of its own, always the same, which from here on follows what is on `stream` now.
  virtual void* beside(void* stream) = 0;
  /// Waits for that stream.
  virtual void finish_beside() = 0;
};

/// Null for the CPU executor.
std::unique_ptr<row_device> make_row_device(executor& on);

}  // namespace penstock::rows
