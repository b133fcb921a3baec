// Waiting for a line that another group has requested, without a pin: the group only looks, and when the fill is over it reads
// as from any line in a frame. A line that is evicted before the look is requested again, by the group that finds it empty.
//
// Where many groups want one line, this keeps all but the first from its entry and its queue: a wait copies what has landed
// already, and then is loads only, and now and then a look at the queue, for a fill that was requested ahead has no other
// harvester.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// Whether a queue_service moves the queues. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN bool is_served(G const& g, Cache const& cache) {
  return from_leader(g, is_leader(g) ? device_ref<u32>(*cache.serving).load(relaxed) : 0) != 0;
}

/// Copies what has landed for a fill's command, `queue pair << 16 | slot` (a hint), and moves its queue unless that is
/// `served`. True if another thread does that. Collective.
///
/// Where many wait for one queue, one of them moves it and the others only look: all of them at it would take a
/// multiprocessor's time from that one.
template <thread_group G, class Cache>
PENSTOCK_FN bool help_command(G const& g, Cache const& cache, u64 command, bool served) {
  if (command >> 16 >= cache.queues_count) return false;  // all that it serves lies in memory
  auto const& queue = cache.queues[command >> 16];
  const u32 slot = static_cast<u32>(command & 0xffffu);
  const bool bounces = queue.bounces != nullptr;
  if (bounces && queue.drain(g, slot)) return false;
  if (served || from_leader(g, is_leader(g) && queue.is_harvested()) != 0) return true;
  if (!bounces && !queue.stirs(g)) return false;
  queue.progress(g);
  if (bounces) queue.drain(g, slot);  // it may have landed just now, and there may be no other round (W7)
  return false;
}

/// The word of a command's slot, `queue pair << 16 | slot`, where its bytes land in a bounce buffer; else null.
template <class Cache>
PENSTOCK_FN u64* landing_of(Cache const& cache, u64 command) {
  if (command >> 16 >= cache.queues_count) return nullptr;
  auto const& queue = cache.queues[command >> 16];
  return queue.bounces == nullptr ? nullptr : queue.words + (command & 0xffffu);
}

/// One group's wait. Lives for one call.
template <thread_group G, class Cache>
class fill_watch {
 public:
  PENSTOCK_FN fill_watch(G const& g, Cache const& cache, dataset_view const& data)
      : g_(g), cache_(cache), data_(data), wait_(cache.patience_ns < longest_ns ? cache.patience_ns : longest_ns) {}

  /// Waits until a fill of the lanes that have one, seen as `at`, is over. False: it takes too long for this kind of wait.
  /// Collective.
  PENSTOCK_FN bool wait(bool fills, found_line at) {
    const auto waiting = g_.ballot(fills);
    drain_landed(fills, at);
    for (bool over = any(g_.ballot(fills && is_over(at))); !over;) {
      if (++rounds_ % rounds_for_queue == 0) {
        u64 command = 0;
        if (fills) command = cache_.record_of(at.entry, at.word).load_command();
        help_command(g_, cache_, g_.shfl(command, lowest(waiting)), is_served(g_, cache_));
      }
      if (from_leader(g_, wait_.pause()) == 0) return false;
      over = any(g_.ballot(fills && is_over(at)));
    }
    count(fills, at);
    return true;
  }

 private:
  // What was asked for ahead of need may have landed where nobody waits for it: to copy it is all that is left to do.
  PENSTOCK_FN void drain_landed(bool fills, found_line at) {
    const u64 own = fills ? cache_.record_of(at.entry, at.word).load_command() : 0;
    u64* const landing = fills ? landing_of(cache_, own) : nullptr;
    auto landed = g_.ballot(landing != nullptr && Cache::queue_pair::is_landed(*landing));
    while (any(landed)) {
      const u64 next = g_.shfl(own, lowest(landed));
      cache_.queues[next >> 16].drain(g_, static_cast<u32>(next & 0xffffu));
      landed = without(landed, g_.ballot(own == next));
    }
  }

  static constexpr u64 longest_ns = one_millisecond_ns;
  static constexpr u32 rounds_for_queue = 4;

  PENSTOCK_FN static bool is_over(found_line at) {
    const u64 e = device_ref<u64>(*at.entry).load(relaxed);
    return entry::state(e) != line_state::filling || !entry::same(e, at.word);
  }

  PENSTOCK_FN void count(bool fills, found_line at) {
    if (counted_) return;
    counted_ = true;
    const auto peers = g_.match_any(fills ? reinterpret_cast<u64>(at.entry) : 0);
    if (fills && lowest(peers) == g_.rank()) data_.counters.add(counter::joins, 1);
  }

  G const& g_;
  Cache const& cache_;
  dataset_view const& data_;
  backoff wait_;
  u32 rounds_ = 0;
  bool counted_ = false;
};

}  // namespace penstock
