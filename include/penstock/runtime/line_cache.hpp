// Owns a cache: directory, frames, queues; makes the views that kernels use; sums the counters.
#pragma once

#include "penstock/array/cached_array.hpp"
#include "penstock/array/writable_view.hpp"
#include "penstock/controller/controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/runtime/identify.hpp"
#include "penstock/runtime/queue_reset.hpp"
#include "penstock/write_back/flush.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// How a cache finds a line (cache/directory.hpp).
enum class directory_kind : u32 {
  automatic,        ///< `direct` while its entries are few beside the cache, else `set_associative`
  direct,           ///< 8 bytes per line of the datasets; a hit is three loads
  set_associative,  ///< 64 bytes per seven frames, however large the datasets are; a hit looks at seven entries
};

/// What a cache does without, to measure what it is worth.
struct ablations {
  bool cache = false;  ///< every access is a command of its own, into a frame that no other access finds (in sets, whatever was
                       ///< asked); nothing is brought in ahead of need
  bool coalescing = false;  ///< lanes of a group that want the same line go each alone, not through one of them
  bool validation = false;  ///< a pin for every access
};

/// When dirty lines go to storage.
struct write_back_options {
  /// Share of the frames that may be dirty. A thread that makes one more so sends others first: the rest is clean, so that a
  /// miss takes a frame without waiting for a write.
  double most_dirty = 0.5;
  double clean_from = 0.25;   ///< share from which on a queue_service writes lines back in the background
  u64 bytes_per_second = 0;   ///< most that a queue_service writes; 0: no limit
  u64 command_bytes = 65536;  ///< most of one command, which carries lines that follow each other; at most 64 KiB, on CUDA
                              ///< 32 lines
  u32 commands = 0;           ///< most under way; 0: 8 per CPU thread, on CUDA a sixteenth of the cache but 32 to 64 MiB
};

struct cache_options {
  u64 bytes = 64ull << 20;  ///< of frames; rounded down to whole lines, or to whole sets of seven
  u64 line_bytes = 4096;    ///< a power of two, 512 to 65536
  u32 queues = 0;           ///< queue pairs per controller; 0: one per CPU thread or multiprocessor, or as many as it has
  u32 queue_depth = 256;    ///< entries of a ring; CUDA, where `queues` is 0: at most, as the frames need them
  u64 timeout_ns = 30 * one_second_ns;  ///< of one command; an access waits at most twice this
  directory_kind directory = directory_kind::automatic;
  /// CUDA: the directory's entries stay in L2 by an access-policy window of the executor's stream, of which there is one: the
  /// cache made last has it. The CPU's caches take no such wish: nothing changes there.
  bool directory_in_l2 = false;
  /// How far ahead of reads that go from line to line the next lines are asked for: four blocks each time (of 32 KiB, at most
  /// eight lines), but at most an eighth of the frames; 0: nothing is. Groups that read along together are some of this apart.
  u64 read_ahead_bytes = 16ull << 20;
  bool bounce = false;  ///< data through bounce buffers also on the CPU executor (CUDA: always)
  ablations without{};
  write_back_options write_back{};
  retry_policy retry{};
};

struct volume_spec {
  struct member {
    controller* owner = nullptr;
    u32 namespace_id = 0;
  };
  volume_layout layout = volume_layout::single;
  std::vector<member> members;
  u64 stripe_bytes = 1ull << 20;  ///< striped: a power of two, at least a line
};

struct dataset_spec {
  std::string name;  ///< for messages
  u64 bytes = 0;
  volume_spec volume;
  bool writable = false;  ///< its namespaces must be, too
  /// Instead of a volume: memory that kernels reach, which the group that misses copies from by itself. Aligned to 16; the
  /// caller keeps it alive. For datasets that are only read.
  void const* memory = nullptr;
  /// Instead of either: it lies nowhere, and is only read, through a filled_cache_view, which makes its lines where they are
  /// missed (coalesce/own_fill.hpp).
  bool own_fills = false;
};

/// Sums of one dataset's counters (core/counters.hpp says what each counts).
struct cache_stats {
  u64 hits = 0, misses = 0, joins = 0, fills = 0, prefetches = 0, evictions = 0, retries = 0, refills = 0, errors = 0;
  u64 bytes_asked = 0, bytes_moved = 0;
  u64 writes = 0, whole_lines = 0, write_backs = 0, write_commands = 0, write_errors = 0;
  u64 bytes_changed = 0, bytes_written = 0;
  u64 frame_waits = 0, search_ns = 0, clean_ns = 0, frame_wait_ns = 0;

  /// Bytes sent to storage for each that the program stored: 0 if it stored none.
  double write_amplification() const {
    return bytes_changed == 0 ? 0 : static_cast<double>(bytes_written) / static_cast<double>(bytes_changed);
  }
  /// Thread time that went into making room: victims, and writes of threads that needed a frame or made a line too many dirty.
  u64 evicting_ns() const { return search_ns + clean_ns + frame_wait_ns; }
};

/// Throws bad_input for lines, or a number of them, that no cache has: what making one would say.
void check_cache(cache_options const& options);

/// Not copyable; outlives its views. The controllers outlive it.
class line_cache {
 public:
  /// Throws penstock::error (bad_input) with one sentence for options that cannot be.
  line_cache(executor& on, std::vector<dataset_spec> const& datasets, cache_options const& options);
  /// Flushes what was written since the last flush. What cannot be is lost, and reported on standard error: a caller that wants
  /// to handle it calls `flush` first.
  ~line_cache();

  /// Elements of T of a dataset, element 0 at byte `origin`. Throws penstock::error (bad_input) when they don't fit, and for a
  /// dataset of `own_fills`.
  template <class T>
  array_view<T> array(u32 dataset, u64 origin, u64 elements) const {
    check_has_source(dataset);
    return array_view<T>(reader(dataset, origin, elements, sizeof(T), alignof(T)), origin, elements);
  }

  /// The same to write. Throws bad_input also for a dataset that is not writable.
  template <class T>
  writable_view<T> writable(u32 dataset, u64 origin, u64 elements) const {
    check_writable(dataset);
    return writable_view<T>(reader(dataset, origin, elements, sizeof(T), alignof(T)), origin, elements);
  }

  /// The same, to read through a view of the program's own: made from `view()`, with another policy (`with`) or own fills
  /// (filled_cache_view), and copied to where kernels find it, at `through`, for as long as they use it. Throws likewise, and
  /// for another policy in a set-associative directory, which would not ask it.
  template <class T, class View>
  cached_array<T, View> array_through(View const* through, u32 dataset, u64 origin, u64 elements) const {
    if constexpr (!has_fills<View>) check_has_source(dataset);
    if constexpr (!std::is_same_v<decltype(View::policy), clock_policy>) check_takes_policy(dataset);
    return {reader(dataset, origin, elements, sizeof(T), sizeof(T)), through, origin, elements};
  }

  /// Writes all dirty lines back and returns when they are on the device for good (docs/DURABILITY.md). Throws
  /// penstock::error (world) that names the bytes that could not be written and why: their lines stay in the cache, and another
  /// flush tries again. REQUIRES: no kernel of this executor runs; what is stored meanwhile, by a resident one, need not be
  /// written.
  void flush();
  /// The same for `bytes` bytes at `offset` of a dataset: of the lines that they lie on.
  void flush(u32 dataset, u64 offset, u64 bytes);

  /// Writes dirty lines back beside whatever runs next, down to seven eighths of `write_back.most_dirty`, so that storing
  /// threads need not; for 10 ms at most, and in 512 warps of a GPU, an eighth of what an H200 has room for. CUDA: returns when
  /// that is on `stream`, a cudaStream_t: one that follows the stores, and ends before a flush, a discard and the cache's end.
  /// CPU: returns when it is over. Nothing for a cache that is only read.
  void clean_beside(void* stream);

  /// Forgets what the cache holds of the lines that these bytes lie on, written or not: they read as what lies in storage.
  /// Throws penstock::error (world) for lines that stay pinned. REQUIRES: as flush.
  void discard(u32 dataset, u64 offset, u64 bytes);
  /// Whether something was stored since the last flush that did not fail.
  bool has_unflushed() const { return writes_so_far() != flushed_writes_; }

  /// For code that works with lines. The pointers in it are the executor's.
  line_cache_view const& view() const { return view_; }
  /// The same, where kernels find it.
  line_cache_view const* kernel_view() const { return view_copy_.data(); }

  /// Refuses a launch whose groups could pin more than half of the frames (PROTOCOLS.md, W4).
  void check_pins(u64 groups, u64 pins_per_group) const;

  /// Throws what a read or a write without room for a status met first since the last call; nothing if all went well. A load
  /// of the host's, unless there is something to report: for what a kernel has met, wait for that kernel first; another may
  /// run. Thread-safe: of several callers one throws a fault, whichever's kernel met it.
  void check_faults();

  /// How this dataset's lines give way to others, from now on; also those that are in frames already. A preference: where a
  /// search meets 32 better lines (or a set has no others), it takes one of them. REQUIRES: no kernel runs.
  void advise(u32 dataset, advice how);

  /// At most this share of the frames, rounded down, for the lines of a dataset that come in from now on: it gets a fixed part
  /// of the frames (of each set), which others use, too. Its share must hold what its readers pin at once. 1: all again. Throws
  /// penstock::error (bad_input) for a share without a frame. REQUIRES: no kernel runs.
  void limit_share(u32 dataset, double share);

  /// Resets queue pairs (see queue_pair::reset for what that takes): the cache serves again once their controllers do. Fills in
  /// flight there fail with failure::resetting, and their waiters see that; a failed line is asked for anew at its next access,
  /// and frames in quarantine are free; lines whose writes were in flight are dirty again. Datasets that were taken for failed
  /// are asked again. Throws penstock::error (world) when a queue cannot be reset; those before it are back.
  recovery recover(recover_scope which = recover_scope::broken);

  cache_stats stats(u32 dataset) const;
  /// The fewest frames so far that no line had that was dirty or being written: what was left of the reserve that
  /// `write_back.most_dirty` keeps for misses. Looked at whenever a line becomes dirty; a line that is stored into while it is
  /// written counts twice, so there may have been more.
  u64 least_clean_frames() const;
  /// REQUIRES: nothing moves the queues meanwhile: no kernel, no queue_service.
  std::vector<queue_counts> queues() const;
  /// Never `automatic`: what was chosen.
  directory_kind directory() const;
  u64 directory_bytes() const { return entries_.bytes(); }
  /// Bytes of the directory that L2 was asked to keep; 0 on the CPU, or where it was not asked.
  u64 directory_bytes_in_l2() const { return l2_bytes_; }
  /// What the directory costs for a TiB of data, at this cache's ratio of directory to datasets.
  u64 directory_bytes_per_tib() const;
  /// Bytes of directory, records and queues: everything but frames.
  u64 metadata_bytes() const;
  /// Those of them that commands on their way need: rings, and buffers that data pass through.
  u64 transit_bytes() const;

 private:
  line_reader reader(u32 dataset, u64 origin, u64 elements, u64 item_bytes, u64 alignment) const;
  void check_has_source(u32 dataset) const;
  void check_takes_policy(u32 dataset) const;
  void check_writable(u32 dataset) const;
  line_range range_of(u32 dataset, u64 offset, u64 bytes, char const* operation) const;
  flush_report read_report() const;
  void reset_report();
  void flush_device(u32 dataset);
  u64 writes_so_far() const;
  void forgive_writes();
  void clear_word(u32& word) const;
  void make_writes();
  void choose_directory();
  void make_directory();
  void add_queues(std::vector<dataset_spec> const& datasets);
  /// What their namespaces are; throws for one that cannot serve.
  std::vector<std::vector<namespace_facts>> look_at_members(std::vector<dataset_spec> const& datasets) const;
  void place_datasets(std::vector<dataset_spec> const& datasets, std::vector<std::vector<namespace_facts>> const& members);
  void make_frames();
  void write_views() const;

  executor& on_;
  cache_options options_;
  std::vector<dataset_spec> specs_;
  u64 lines_ = 0;  ///< of all datasets
  std::vector<dataset_view> datasets_;
  std::vector<controller*> controllers_;
  line_cache_view view_;
  buffer<u64> entries_;
  u64 l2_bytes_ = 0;
  buffer<frame_record> records_;
  buffer<u8> frames_;
  buffer<u64> lists_;
  buffer<u64> positions_;  ///< clock hand, next fresh frame
  buffer<u32> in_flight_;
  buffer<u64> admission_;
  buffer<fault_slot> fault_;
  buffer<u32> fault_taken_;
  buffer<u32> serving_;
  buffer<write_slot> write_slots_;
  buffer<u64*> write_entries_;
  buffer<write_state> write_state_;
  buffer<u8> write_buffers_;
  buffer<u64> write_lists_;
  buffer<flush_report> flush_report_;
  buffer<write_slot> device_flush_;  ///< apart: an earlier Flush may report to it while the host reads or resets the report
  u64 flushed_writes_ = 0;           ///< that were counted before the last flush
  buffer<counter_shard> counters_;
  buffer<dataset_health> health_;
  buffer<dataset_view> dataset_table_;
  std::vector<std::unique_ptr<queue_pair<line_sink>>> queues_;
  buffer<line_cache_view::queue_pair> queue_table_;
  buffer<line_cache_view> view_copy_;
};

/// `transit_bytes` of a cache over datasets of one controller with these limits, before it is made. `writable`: one of them is.
u64 transit_bytes_for(executor const& on, cache_options options, controller_limits const& limits, bool writable);

}  // namespace penstock
