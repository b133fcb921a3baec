// A cache over stamped media, made anew for each run of a body, and looked at when the run is over.
#pragma once

#include "penstock/host/line_cache.hpp"
#include "penstock/host/model_controller.hpp"
#include "support/stamped_media.hpp"

#include <memory>

namespace penstock::test {

struct cache_shape {
  u64 frames = 8;
  u64 line_bytes = 512;
  u64 media_bytes = 1 << 16;
  u32 queues = 2;
  u32 depth = 32;
  bool bounce = false;
  u64 timeout_ns = 30 * one_second_ns;
};

class cache_fixture {
 public:
  cache_fixture(executor& on, controller& owner, u32 namespace_id, cache_shape shape) : shape_(shape) {
    cache_options options;
    options.bytes = shape.frames * shape.line_bytes;
    options.line_bytes = shape.line_bytes;
    options.queues = shape.queues;
    options.queue_depth = shape.depth;
    options.bounce = shape.bounce;
    options.timeout_ns = shape.timeout_ns;
    cache_ = std::make_unique<line_cache>(
        on, std::vector<dataset_spec>{{"media", shape.media_bytes, {volume_layout::single, {{&owner, namespace_id}}}}},
        options);
  }

  line_cache& cache() { return *cache_; }
  array_view<u64> words() const { return cache_->array<u64>(0, 0, shape_.media_bytes / 8); }
  array_view<u8> bytes() const { return cache_->array<u8>(0, 0, shape_.media_bytes); }

  /// Prefetches may still be in flight when a body ends; whoever looks at the entries waits for them first.
  void settle() {
    // REQUIRES: the CPU executor, whose memory the host reads in place.
    const lone_thread g;
    line_cache_view const& view = cache_->view();
    backoff wait(10 * one_second_ns);
    for (;;) {
      bool filling = false;
      for (u64 l = 0; l < lines(); ++l) filling |= entry::state(load(l)) == line_state::filling;
      if (!filling || !wait.pause()) return;
      for (u32 q = 0; q < view.queues_count; ++q) view.queues[q].progress(g);
    }
  }

  /// Nobody holds a pin, nothing is in flight, each frame belongs to at most one line, and what was moved was counted.
  void check_at_rest(check_report& report) {
    settle();
    std::vector<u32> owners(cache_->view().frames, 0);
    for (u64 l = 0; l < lines(); ++l) {
      const u64 e = load(l);
      PENSTOCK_CHECK_EQ(report, 0, entry::pins(e));
      PENSTOCK_CHECK(report, entry::state(e) != line_state::filling);
      if (entry::state(e) != line_state::empty) ++owners[cache_->view().directory.layout.place(e)];
    }
    for (u32 n : owners) PENSTOCK_CHECK(report, n <= 1);
    const cache_stats stats = cache_->stats(0);
    PENSTOCK_CHECK_EQ(report, stats.fills * shape_.line_bytes, stats.bytes_moved);
    PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
    u64 commands = 0;
    for (auto const& q : cache_->queues()) commands += q.commands;
    PENSTOCK_CHECK_EQ(report, stats.fills, commands);
  }

 private:
  u64 lines() const { return ceil_div(shape_.media_bytes, shape_.line_bytes); }
  u64 load(u64 line) const { return device_ref<u64>(cache_->view().directory.entries[line]).load(acquire); }

  cache_shape shape_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::test
