// Moving queues that others have commands in: a look by all lanes at once, each at a queue of its own, and progress where there
// is something to do.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// Looks at `size(g)` queues from number `from` on, which may be any, and moves those that have something to do, at most
/// `most`. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void move_some_queues(G const& g, Cache const& cache, u64 from, u32 most) {
  const u32 queues = cache.queues_count;
  if (queues == 0) return;
  const u32 look = index_in(g);
  const u32 mine = static_cast<u32>((from + look) % queues);
  auto const& queue = cache.queues[mine];
  // Only progress drains what has landed without a waiter, and a look does not show it.
  const bool drains = look == 0 && queue.bounces != nullptr;
  auto todo = g.ballot(look < queues && (drains || queue.stirs()));
  for (u32 moved = 0; any(todo) && moved < most; ++moved) {
    const u32 lane = lowest(todo);
    cache.queues[g.shfl(mine, lane)].progress(g);
    todo = without(todo, g.ballot(g.rank() == lane));
  }
}

/// The same for all queues, each group from one of its own on. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void move_all_queues(G const& g, Cache const& cache) {
  const u64 from = from_leader(g, executor_ordinal());
  for (u32 looked = 0; looked < cache.queues_count; looked += size(g)) move_some_queues(g, cache, from + looked, size(g));
}

}  // namespace penstock
