// What the lanes of a group do as one for the lines that they want: find those that want the same, count, submit fills.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/coalesce/copied_fill.hpp"

namespace penstock {

/// The lanes that want this lane's line, the lowest of which acts for all. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN auto peers_of(G const& g, Cache const& cache, bool want, line_id line) {
  return g.match_any(!cache.coalesces ? g.rank() : want ? value(line) : ~0ull);
}

/// Counts the searches of a group's lanes, which made them at once. Collective.
template <thread_group G>
PENSTOCK_FN void count_search(G const& g, dataset_view const& data, victim_search const& mine) {
  const auto searched = g.ballot(mine.made);
  if (!any(searched)) return;
  const u64 ns = g.shfl(mine.ns, lowest(searched));
  if (is_leader(g)) data.counters.add(counter::search_ns, ns * size(g));
}

/// Submits the fills of the lanes that claimed, queue by queue; those from memory are over when it returns. Collective. This
/// lane's status.
template <thread_group G, class Cache>
PENSTOCK_FN status submit_fills(G const& g, Cache const& cache, dataset_view const& data, bool claimed,
                                typename Cache::fill const& fill) {
  status outcome{};
  if (data.memory != 0) copy_fills(g, claimed, fill);
  auto todo = g.ballot(claimed && data.memory == 0);
  while (any(todo)) {
    const u64 queue = g.shfl(fill.queue, lowest(todo));
    const bool mine = claimed && fill.queue == queue;
    const status s = cache.queues[queue].submit(g, mine, fill.command, fill.target);
    if (mine) outcome = s;
    todo = without(todo, g.ballot(mine));
  }
  if (claimed && outcome.ok()) {
    data.counters.add(counter::fills, 1);
    data.counters.add(counter::bytes_moved, cache.line_bytes());
  }
  return outcome;
}

}  // namespace penstock
