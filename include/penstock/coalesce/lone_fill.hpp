// A miss of one line, by one thread: the claim, the command, and its completion if nothing else is to be done meanwhile. The
// same steps as those that a group takes together (line_request.hpp), which goes on from wherever this stops.
//
// One thread is what a miss of a whole warp comes to when all its lanes want one line. It needs no votes and no meetings. Trips
// to memory and instructions that follow each other are what a lone miss consists of (docs/MISS_PATH.md): so nothing is
// acquired before the command is on its way, for that would empty L1 of the fields of the cache and the dataset.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/core/backoff.hpp"

namespace penstock {

/// How far a miss has come.
struct lone_fill {
  u64* entry = nullptr;  ///< claimed, with a pin of this thread; null: nothing is held
  u64 frame = 0;         ///< its address, once the line is valid and this thread has acquired it
  bool sent = false;     ///< its command is on its way
  bool queued = false;   ///< has a ticket, which is given back when the access is over
  u64 ticket = 0;
};

/// Claims a line that is in no frame and brings it in. Nothing is held if another thread has the line, there is no frame, or
/// the dataset is none that commands go out for. Stops where it would have to wait for others: before its command is sent or
/// after it, or for its turn. `at`: what the directory said of the line a moment ago. `width`: of the group that waits
/// meanwhile. `queues`: it claims in its turn (fill_admission.hpp).
template <class Cache>
PENSTOCK_COLD lone_fill fill_alone(Cache const& cache, dataset_view const& data, line_id line, found_line at, u32 width,
                                   bool queues) {
  using queue_pair = typename Cache::queue_pair;
  constexpr u64 most_alone_ns = one_millisecond_ns / 8;
  typename Cache::fill fill = cache.make_fill(data, line);
  if (ends_when_sent(data.source())) return {};
  queue_pair const& queue = cache.queues[fill.queue];
  typename queue_pair::sent_command command;
  victim_search search;
  search.most_in_use = victim_search::brief;
  lone_fill mine;
  const bool absent = at.entry == nullptr || at.state() == line_state::empty;
  if (queues && absent && cache.admission.applies()) {
    mine.ticket = cache.admission.take(1);
    mine.queued = true;
    if (!cache.admission.admits(mine.ticket)) return mine;
  }
  {
    // A line that is not to be asked for is given a state that is not claimed: a branch would be a trip to memory of its own.
    const bool refused = !cache.looks_up || (data.health != nullptr && data.health->is_troubled());
    const queue_pair here = queue;  // what try_send needs of it, once
    at.word |= refused ? static_cast<u64>(line_state::failed) : 0;
    if ((at.entry == nullptr && refused) || cache.claim_empty(data, line, 1, at, search) != access_step::claimed) return mine;
    cache.place(fill, at, nullptr);
    mine.entry = at.entry;
    mine.sent = here.try_send(fill.command, fill.target, command);
  }
  // While the controller works, what has no waiter.
  data.counters.add(counter::misses, 1);
  if (search.made) data.counters.add(counter::search_ns, search.ns * width);
  if (!mine.sent) return mine;
  data.counters.add(counter::fills, 1);
  data.counters.add(counter::bytes_moved, cache.line_bytes());
  // Where a service moves the queues, no other thread does.
  if (device_ref<u32>(*cache.serving).load(relaxed) != 0) return mine;
  const queue_pair here = queue;
  u64 head = 0;
  for (brief_wait wait(cache.patience_ns < most_alone_ns ? cache.patience_ns : most_alone_ns);;) {
    call_on_host(here.poll, here.poll_target, here.id);
    const u64 e = device_ref<u64>(*at.entry).load(seen_before_fence);
    if (entry::state(e) == line_state::valid) {
      order_after_seeing();  // another thread has published it
      break;
    }
    if (entry::state(e) != line_state::filling) return mine;
    const auto taken = here.take_next(command, head);
    if (taken == queue_pair::taken::own) break;
    if (taken == queue_pair::taken::crowd) return mine;
    if (taken == queue_pair::taken::none && !wait.pause()) return mine;
  }
  mine.frame = fill.command.address;
  return mine;
}

}  // namespace penstock
