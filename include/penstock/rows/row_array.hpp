// An array as bulk operations see it: rows of one width, wherever they lie, gathered, scattered and added to by number. The
// Python arrays are made of this.
#pragma once

#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/kernels/descriptor.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock {

enum class placement {
  hbm,   ///< a copy next to the kernels
  host,  ///< read in place, over the link: memory of the caller's, or a file seen through the page cache
  /// The same behind a cache in HBM; the group that misses a line of what is only read copies it from there itself.
  host_cached,
  storage,  ///< a file behind a cache
};

struct row_shape {
  u64 rows = 0;
  u64 row_bytes = 0;
  u64 bytes() const { return rows * row_bytes; }
};

/// Files or block devices that bytes are spread over.
struct file_volume {
  volume_layout layout = volume_layout::single;
  u64 stripe_bytes = 0;
  std::vector<std::string> members;
  u64 member_bytes = 0;  ///< that each of them has
  u64 bytes = 0;         ///< of the volume, up to where the rows and what fills their last page end
};

/// Where the rows come from: a file, a volume, or memory of the caller's.
struct row_source {
  std::string path;  ///< a regular file or a block device; of a volume what it is called; empty: memory
  u64 offset = 0;    ///< of row 0 in the file or on the volume, in bytes
  void* memory = nullptr;
  /// Of that memory, or of the volume: kept until nothing, not even a captured graph, can reach it.
  std::shared_ptr<void> owner = {};
  std::optional<file_volume> volume = {};  ///< placement storage, to read
};

/// A copy in local memory that several processes of a machine have together: equal parts, in turn one of each process, which
/// all of them map side by side.
struct shared_copy {
  std::vector<int> parts;  ///< descriptors, in the order in which they lie; none: the copy is this process's alone
  u32 processes = 1;
  u32 own = 0;  ///< this process has parts own, own + processes, ...
};

struct row_array_options {
  placement where = placement::host;
  bool writable = false;
  /// host_cached and storage. Rows that were stored into are stored into again: a step of training writes a sixth less of a
  /// table with this share than with half, and the rest is clean enough for its misses.
  cache_options cache{.write_back = {.most_dirty = 0.75}};
  io_engine engine = io_engine::automatic;
  bool direct = false;         ///< storage: bypasses the page cache (O_DIRECT)
  u32 controller_threads = 0;  ///< 0: as software_options_for
  /// CUDA, host: threads of the CPU that large gathers of short rows share with the link; 0: none. A GPU reads narrow rows in
  /// place as fast as it translates addresses, which is slower than the link.
  u32 gather_threads = 0;
  shared_copy copied{};  ///< hbm, read-only. The rows are there when the constructors of all processes have returned
};

/// Called with how many bytes of a copy are done, and of how many. What it throws ends the copy.
using row_progress = std::function<void(u64 done, u64 total)>;

/// Row numbers at regular distances, without a list: those of nested loops, `first` + the sum of index * step over the levels.
struct row_grid {
  static constexpr u32 max_levels = 4;
  struct loop {
    std::int64_t step = 1;
    u64 count = 0;
  };

  u32 levels = 0;  ///< 0: there is a list
  u64 first = 0;
  loop level[max_levels];  ///< the outermost first
};

/// What is taken of each row, where it is not all of it: `bytes` bytes from byte `offset` of the row on; row n begins at byte
/// n * pitch of the array. A pitch of one element makes each element a row.
struct row_part {
  u64 pitch = 0;  ///< 0: whole rows
  u64 offset = 0;
  u64 bytes = 0;
};

/// The rows that a call takes: signed integers of 4 or 8 bytes where the executor's kernels reach them, or a grid.
struct row_list {
  void const* data = nullptr;
  u64 count = 0;
  u32 item_bytes = 8;
  bool negative_indices = true;  ///< negative ones count from the end; otherwise they are out of range
  row_grid grid{};
  row_part part{};

  /// All rows of a grid. Throws bad_input for more levels than it has.
  static row_list over(u64 first, std::span<row_grid::loop const> loops, row_part const& part = {});
  /// Rows first, first + step, ...
  static row_list range(u64 first, std::int64_t step, u64 count);
};

enum class gather_order {
  automatic,  ///< what is faster, as measured (docs/ARRAYS.md)
  as_asked,
  by_address,  ///< CUDA: sorted first, and repeats read once; results lie where they were asked for all the same
  /// CUDA, arrays in memory: a transfer of the copy engines for each row, and no multiprocessor. The list is copied to the host
  /// and looked at first. For wide rows: `automatic` takes it from 1 MiB on. Throws bad_input for rows behind a cache, or while
  /// a graph is captured.
  copy_engine,
};

struct row_call_options {
  void* stream = nullptr;  ///< CUDA: a cudaStream_t, which everything goes to; nullptr is the legacy default stream
  u32 units = 0;           ///< SMs at most; 0: all
  gather_order order = gather_order::automatic;
};

/// Element types that can be added.
enum class number_kind { int32, int64, uint32, uint64, float32, float64 };

struct row_gather;

/// A call under way. Movable; going away does not wait. Thread-safe: all waits have one outcome.
class row_call {
 public:
  struct state;
  explicit row_call(std::unique_ptr<state> own);
  row_call(row_call&&) noexcept;
  row_call& operator=(row_call&&) noexcept;
  ~row_call();

  /// Waits until everything is done. The lowest position whose index lies outside of the array; the rows of all others are
  /// done. Throws penstock::error for a row that could not be read or stored. Of a call that was captured into a graph
  /// nothing: see row_array::check_replays.
  std::optional<u64> wait();
  /// CUDA: lets a stream wait, and not this thread. A later `wait` reports what went wrong.
  void order_before(void* stream);
  /// CUDA: whether everything is done; the CPU's calls are.
  bool is_done() const;

 private:
  friend class row_array;
  friend std::vector<row_call> gather_all(std::span<row_gather const> gathers, row_call_options const& how);
  std::unique_ptr<state> state_;
};

/// What an array of some placement takes, computed before anything is allocated.
struct row_array_plan {
  u64 hbm_bytes = 0;       ///< next to the kernels: copy, or frames
  u64 host_bytes = 0;      ///< pinned, in place
  u64 storage_bytes = 0;   ///< left where it lies
  u64 metadata_bytes = 0;  ///< directory and records; an estimate
  u64 transit_bytes = 0;   ///< rings, and buffers that data pass through; CUDA: nearly all of it pinned host memory
  u64 mapping_bytes = 0;   ///< CUDA: page tables of the GPU for what is read in place; an estimate
};

/// Rows that several processes of a machine keep together: each has a part of them, and reads those of the others.
struct kept_together {
  std::span<int const> parts;  ///< what share_kept_rows gave each of them, in the same order in all processes
  u32 own = 0;                 ///< which of them is this one's
  u64 everywhere = 0;          ///< the first so many rows of the list lie in each process
};

/// Rows that gathers took from those that are kept.
struct kept_reads {
  u64 own = 0;    ///< from this process's memory
  u64 peers = 0;  ///< from that of others
};

/// A call whose rows lie side by side moves one run of bytes: in memory by one copy (CUDA: of the copy engines, unless it is
/// captured), behind a cache line after line, with the lines that follow on their way.
///
/// REQUIRES: the executor outlives it. Thread-safe for gathers; nothing but prefetches runs beside a scatter or add, nothing
/// beside a flush.
class row_array {
 public:
  /// Throws penstock::error: a file that is missing, too short or not readable, memory that cannot be pinned (with the bytes
  /// and `ulimit -l`), a placement that this executor does not have. `watch`: called every 64 MiB of what placement hbm copies;
  /// what it throws is thrown here, and nothing is left.
  row_array(executor& on, row_shape const& shape, row_source const& source, row_array_options const& options,
            row_progress const& watch = {});
  ~row_array();
  row_array(row_array const&) = delete;
  row_array& operator=(row_array const&) = delete;

  row_shape shape() const;
  placement where() const;
  /// Copies rows to `out`, which kernels reach, in the order of the list. CUDA: returns when that is on the stream.
  /// Throws penstock::error (world) when the file has become too short; bad_input for a grid or a part that reaches beyond the
  /// array, as all calls.
  row_call gather(row_list const& rows, void* out, row_call_options const& how = {});
  /// The same, and waits: the lowest position out of range, as row_call::wait. While the stream is captured into a graph it
  /// waits for nothing, and reports nothing. Every replay reads the list anew. The graph keeps what the array lies in until
  /// it, and every executable of it, is destroyed: a replay may come after the array.
  std::optional<u64> gather_now(row_list const& rows, void* out, row_call_options const& how = {});
  /// Waits for the stream, and returns what replays of captured calls have met since the last call: the lowest position out of
  /// range in any of their lists. Throws as row_call::wait; bad_input while the stream is captured.
  std::optional<u64> check_replays(void* stream = nullptr);
  /// Asks for the rows' lines ahead of need, and waits for some wherever it has asked for as many as may be on their way;
  /// nothing for what has no cache. CUDA: the call is over when the lines are there, or a second later.
  row_call prefetch(row_list const& rows, row_call_options const& how = {});
  /// Stores rows; of those that are named twice either one. Throws bad_input for an array that is read-only.
  row_call scatter(row_list const& rows, void const* values, row_call_options const& how = {});
  /// Adds to them, each sum atomic, so repeats add up. Throws bad_input also for rows that are no whole number of elements, and
  /// for numbers that do not lie aligned to their size.
  row_call add(row_list const& rows, number_kind kind, void const* values, row_call_options const& how = {});
  /// Keeps copies of some rows next to the kernels, for gathers by a list: those that are asked for most. Throws bad_input for
  /// an array that is written to, that lies there as a whole or has some already, for a row that it does not have and one that
  /// is named twice; world where there is no room. `watch`: as for the constructor; what it throws leaves none. REQUIRES: no
  /// call is under way.
  void keep_rows(std::span<std::int64_t const> rows, row_progress const& watch = {});
  /// Makes this process's part of `rows` rows that so many processes keep together, `everywhere` of them in each: a descriptor,
  /// the caller's, to send to the others. The part stays as long as any process keeps it.
  int share_kept_rows(u64 rows, u32 processes, u64 everywhere) const;
  /// The same as keep_rows, together with others: the row at position k of the list, from `everywhere` on, lies in the part of
  /// process (k - everywhere) % processes. Returns when this process's part is full: gathers wait until those of all are.
  /// REQUIRES: the same list in all of them.
  void keep_rows_together(std::span<std::int64_t const> rows, kept_together const& how, row_progress const& watch = {});
  /// Waits for the stream.
  kept_reads kept_rows_taken(void* stream = nullptr) const;
  /// Lends the array to a kernel of the caller's: fills `to`, except its shape, calls `launch`, which puts the kernel on the
  /// stream, and returns the call to wait for. `stores`: the kernel writes. Throws bad_input for an array that is read-only,
  /// and for elements that do not lie aligned to their size.
  row_call lend(kernels::array_descriptor& to, u64 element_bytes, bool stores, void* stream,
                std::function<void()> const& launch);
  /// Likewise to kernels that others launch, as long as the array is open; check_replays reports what they met.
  void lend_for_good(kernels::array_descriptor& to, u64 element_bytes, bool stores);
  /// Throws penstock::error (world) when a file that is mapped, here or by the caller, is shorter than the array, or was: a CPU
  /// has read zeros there through host_address, kernel_address or the cache. Calls of this class do so themselves.
  void check_file() const;
  /// The caller's memory has moved: its bytes lie at `to` from now on, what was stored and not written back is written there.
  /// Throws bad_input unless it is written to through a cache: any other array over memory is opened anew.
  /// REQUIRES: no call is under way.
  void move_memory(void* to);

  /// Lets others write to its file, while something still keeps this array; unless a CUDA graph does, whose replays may store.
  /// REQUIRES: flushed; nothing is stored through it, or into its memory, from now on.
  void give_up_writing();
  /// Whether numbers of this kind lie aligned to their size, as `add` needs them.
  bool adds_in_place(number_kind kind) const;
  /// As line_cache::flush; for a file that is mapped, msync.
  void flush();

  /// Where it has one: dataset 0 has the rows, from byte `cached_origin` on.
  line_cache* cache() const;
  u64 cached_origin() const;
  /// Of the cache; nothing for what has none.
  std::optional<cache_stats> stats() const;
  /// By gathers since it was opened; of one that a graph captured once, however often it is replayed.
  u64 bytes_requested() const;
  /// Address of row 0 for the host's eyes, or null where the host has none.
  void* host_address() const;
  /// The same for callers that may store there although a file was opened to be read: it never changes, nor does this array.
  /// Throws penstock::error (world). Thread-safe.
  void* storable_address() const;
  /// Address of row 0 for kernels, or null behind a cache.
  void* kernel_address() const;

  struct state;

 private:
  friend std::vector<row_call> gather_all(std::span<row_gather const> gathers, row_call_options const& how);
  std::shared_ptr<state> state_;
};

/// One of several gathers that are asked for at once.
struct row_gather {
  row_array* from = nullptr;
  row_list rows;
  void* out = nullptr;
};

/// Gathers from several arrays of one executor, on one stream: a call for each, as row_array::gather. CUDA: rows of arrays in
/// memory share a launch; those behind a cache, and those that are sorted first, have one of their own.
std::vector<row_call> gather_all(std::span<row_gather const> gathers, row_call_options const& how = {});

/// Makes this process's parts of a copy of `bytes` that so many processes have together: descriptors, the caller's, to send to
/// the others. Throws penstock::error (world).
std::vector<int> share_copy(executor& on, u64 bytes, u32 processes);

/// Throws bad_input as opening the array would: a placement that the executor does not have, or not to write, a cache that
/// there cannot be. Nothing is opened.
row_array_plan plan_rows(executor const& on, row_shape const& shape, row_source const& source,
                         row_array_options const& options);

}  // namespace penstock
