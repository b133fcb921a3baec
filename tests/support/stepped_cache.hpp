// A cache over a stepped drive: the whole path of reads and writes, in headers alone.
#pragma once

#include "support/stepped_drive.hpp"

#include "penstock/array/writable_view.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "penstock/write_back/flush.hpp"
#include "support/bare_cache.hpp"

namespace penstock::test {

struct stepped_shape {
  u32 sets = 0;    ///< 0: `direct`
  u32 frames = 3;  ///< of `direct`
  u64 lines = 8;
  u32 depth = 4;
  u32 most_dirty = 2;
};

class stepped_cache : public bare_cache<> {
 public:
  explicit stepped_cache(stepped_shape const& shape)
      : stepped_cache(shape, shape.sets == 0 ? shape.frames : set_ways * shape.sets) {}

  stepped_drive& drive() { return drive_; }
  std::span<u64 const> stored() const { return media_.words(); }
  writable_view<u64> words() const { return {reader(), 0, data_.bytes / 8}; }

  /// As line_cache::flush. Collective.
  template <thread_group G>
  status flush(G const& g) {
    flush_report report;
    const line_range range{0, 0, data_.lines};
    flush_lines(g, view_, range, report, 0, flush_items(view_, range));
    if (report.failure == 0) flush_device(g, view_, 0, report, device_flush_);
    return unpack_status(report.failure);
  }

  /// Sends a run of dirty lines that nobody holds.
  bool clean() {
    const lone_thread g;
    retire_runs(g, view_);
    return view_.writes.more_than(0) && clean_next(g, view_, size(g)).runs != 0;
  }

  /// What is wrong with the entries when all have come to rest: nothing.
  std::string unrest() const {
    std::vector<u32> holders(view_.frames, 0);
    const u64 words = view_.directory.is_direct() ? data_.lines : u64{view_.directory.map.sets} * set_words;
    for (u64 w = 0; w < words; ++w) {
      if (!view_.directory.is_direct() && w % set_words == 0) continue;
      const u64 e = view_.directory.entries[w];
      const std::string which = "entry " + std::to_string(w);
      if (entry::pins(e) != 0) return which + " has " + std::to_string(entry::pins(e)) + " pins";
      if (entry::dirty(e) || entry::writing(e)) return which + " is dirty or being written after the last flush";
      if (entry::state(e) == line_state::filling) return which + " is being filled by nobody";
      if (entry::state(e) == line_state::empty) continue;
      if (++holders[view_.directory.frame_of(view_.directory.entries + w, e)] > 1) return which + " shares its frame";
    }
    for (u64 l = 0; l < data_.lines && !view_.directory.is_direct(); ++l) {
      if (frames_of(l) > 1) return "line " + std::to_string(l) + " is in two frames";
    }
    if (state_.lines != 0) return "the word of dirty lines and lines being written is " + std::to_string(state_.lines);
    return "";
  }

 private:
  static constexpr u32 slots = 2, run_lines = 2;

  stepped_cache(stepped_shape const& shape, u32 frames)
      : bare_cache<>(frames, shape.lines, clock_policy{&hand_, frames}, shape.sets), drive_(media_.bytes()),
        pair_(cpu_memory(), drive_, 1, options_of(shape)), queue_(pair_.view()) {
    view_.queues = &queue_;
    view_.queues_count = 1;
    view_.serving = &serving_;
    view_.fault = &fault_;
    view_.fault_taken = &fault_taken_;
    view_.prefetches_in_flight = &prefetches_;
    view_.prefetch_shards = view_.prefetch_limit = 1;
    view_.patience_ns = 2 * timeout_ns;
    view_.writes.slots = slots_;
    view_.writes.entries = entries_of_runs_;
    view_.writes.state = &state_;
    view_.writes.buffers = round_up(reinterpret_cast<u64>(buffers_.data()), stepped_drive::page);
    view_.writes.most_dirty = shape.most_dirty;
    view_.writes.slots_count = slots;
    view_.writes.run_lines = run_lines;
    data_.writable = true;
    data_.health = &health_;
    data_.volume.members_count = 1;
    data_.volume.members[0] = {1, 9, 0, 1};
  }

  static constexpr u64 timeout_ns = 5 * one_millisecond_ns;  ///< of the run's time; a command takes a tenth of it

  static queue_options options_of(stepped_shape const& shape) {
    queue_options options;
    options.depth = shape.depth;
    options.timeout_ns = timeout_ns;
    options.poll_in_place = false;
    return options;
  }

  u64 hand_ = 0;
  stepped_drive drive_;
  queue_pair<line_sink> pair_;
  queue_pair_view<line_sink> queue_;
  fault_slot fault_;
  u32 fault_taken_ = 0;
  u32 serving_ = 0;
  u32 prefetches_ = 0;
  write_slot slots_[slots];
  write_slot device_flush_;
  u64* entries_of_runs_[slots * 2 * run_lines] = {};
  write_state state_;
  dataset_health health_;
  std::vector<std::byte> buffers_ = std::vector<std::byte>(slots * run_lines * line_bytes + stepped_drive::page);
};

}  // namespace penstock::test
