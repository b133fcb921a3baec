// A cache over stamped media, made anew for each run of a body, and looked at when the run is over.
#pragma once

#include "penstock/controller/model_controller.hpp"
#include "penstock/runtime/line_cache.hpp"
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
  directory_kind directory = directory_kind::direct;
  ablations without{};
  bool writable = false;
  write_back_options write_back{};
  retry_policy retry{.fails_after = 0};
  u64 read_ahead_bytes = cache_options{}.read_ahead_bytes;
};

inline constexpr directory_kind both_directories[] = {directory_kind::direct, directory_kind::set_associative};

inline std::string name_of(directory_kind kind) { return kind == directory_kind::direct ? "direct" : "set_associative"; }

/// The same with another directory; one of sets has at least as many frames.
inline cache_shape with_directory(cache_shape shape, directory_kind kind) {
  shape.directory = kind;
  if (kind == directory_kind::set_associative) shape.frames = round_up(shape.frames, set_ways);
  return shape;
}

/// A drive that answers in any order, and overwrites commands as soon as it has them.
inline model_options shuffled() {
  model_options options;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  return options;
}

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
    options.directory = shape.directory;
    options.without = shape.without;
    options.write_back = shape.write_back;
    options.retry = shape.retry;
    options.read_ahead_bytes = shape.read_ahead_bytes;
    cache_ = std::make_unique<line_cache>(
        on,
        std::vector<dataset_spec>{
            {"media", shape.media_bytes, {volume_layout::single, {{&owner, namespace_id}}}, shape.writable}},
        options);
  }

  line_cache& cache() { return *cache_; }
  array_view<u64> words() const { return cache_->array<u64>(0, 0, shape_.media_bytes / 8); }
  writable_view<u64> writable() const { return cache_->writable<u64>(0, 0, shape_.media_bytes / 8); }
  array_view<u8> bytes() const { return cache_->array<u8>(0, 0, shape_.media_bytes); }

  /// All that was written is in the media afterwards.
  void flush() {
    cache_->flush();
    ++flushes_;
  }

  /// Prefetches may still be in flight when a body ends; whoever looks at the entries waits for them first.
  void settle() {
    // REQUIRES: the CPU executor, whose memory the host reads in place.
    const lone_thread g;
    line_cache_view const& view = cache_->view();
    backoff wait(10 * one_second_ns);
    for (;;) {
      bool filling = false;
      for (u64 l = 0; l < lines(); ++l) filling |= find(l).state() == line_state::filling;
      if (!filling || !wait.pause()) return;
      for (u32 q = 0; q < view.queues_count; ++q) view.queues[q].progress(g);
    }
  }

  /// Nobody holds a pin, nothing is in flight, each frame belongs to at most one line, no line to two frames, and what was
  /// moved was counted.
  void check_at_rest(check_report& report) {
    settle();
    directory_view const& directory = cache_->view().directory;
    std::vector<u32> owners(cache_->view().frames, 0);
    u64 found = 0, held = 0;
    for (u64 l = 0; l < lines(); ++l) {
      const found_line at = find(l);
      if (at.state() == line_state::empty) continue;
      ++found;
      ++owners[directory.frame_of(at.entry, at.word)];
      PENSTOCK_CHECK_EQ(report, l, frame_record::line_of(cache_->view().record_of(at.entry, at.word).load_owner()));
    }
    for (u32 n : owners) PENSTOCK_CHECK(report, n <= 1);
    const u64 words = cache_->directory_bytes() / sizeof(u64);
    for (u64 w = 0; w < words; ++w) {
      if (!directory.is_direct() && w % set_words == 0) continue;
      const u64 e = device_ref<u64>(directory.entries[w]).load(acquire);
      PENSTOCK_CHECK_EQ(report, 0, entry::pins(e));
      PENSTOCK_CHECK(report, entry::state(e) != line_state::filling);
      PENSTOCK_CHECK(report, !entry::dirty(e) && !entry::writing(e));
      held += entry::state(e) != line_state::empty;
    }
    PENSTOCK_CHECK_EQ(report, found, held);
    if (fill_admission const& turns = cache_->view().admission; turns.applies()) {
      PENSTOCK_CHECK_EQ(report, device_ref<u64>(*turns.next).load(relaxed), device_ref<u64>(*turns.done).load(relaxed));
    }
    const cache_stats stats = cache_->stats(0);
    PENSTOCK_CHECK_EQ(report, stats.fills * shape_.line_bytes, stats.bytes_moved);
    PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
    u64 commands = 0;
    for (auto const& q : cache_->queues()) commands += q.commands;
    PENSTOCK_CHECK_EQ(report, stats.fills + stats.write_commands + flushes_, commands);
    if (shape_.writable) PENSTOCK_CHECK_EQ(report, 0, cache_->view().writes.lines());
  }

 private:
  u64 lines() const { return ceil_div(shape_.media_bytes, shape_.line_bytes); }
  found_line find(u64 line) const { return cache_->view().directory.find(line_id{line}); }

  cache_shape shape_;
  std::unique_ptr<line_cache> cache_;
  u64 flushes_ = 0;
};

/// A body whose words (and bytes, if it has them) lie behind a cache of its own for each run, which is at rest when it is over.
template <class Body>
struct on_fresh_cache : Body {
  executor* on = nullptr;
  controller* owner = nullptr;
  cache_shape shape;
  std::shared_ptr<cache_fixture> fixture;

  void prepare(run_shape) {
    fixture.reset();
    fixture = std::make_shared<cache_fixture>(*on, *owner, 1, shape);
    this->words = fixture->words();
    if constexpr (requires { this->bytes; }) this->bytes = fixture->bytes();
  }
  void verify(check_report& report, run_shape) { fixture->check_at_rest(report); }
};

}  // namespace penstock::test
