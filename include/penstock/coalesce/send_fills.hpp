// What the lanes of a group do as one for the lines that they want: find those that want the same, count, send fills.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/coalesce/copied_fill.hpp"
#include "penstock/coalesce/own_fill.hpp"

namespace penstock {

inline constexpr u64 no_command = ~0ull;

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

/// Submits the commands of the lanes that claimed, queue by queue. Collective. This lane's status.
template <thread_group G, class Cache>
PENSTOCK_FN status submit_fills(G const& g, Cache const& cache, bool claimed, typename Cache::fill const& fill) {
  status outcome{};
  auto todo = g.ballot(claimed);
  while (any(todo)) {
    const u64 queue = g.shfl(fill.queue, lowest(todo));
    const bool mine = claimed && fill.queue == queue;
    const status s = cache.queues[queue].submit(g, mine, fill.command, fill.target);
    if (mine) outcome = s;
    todo = without(todo, g.ballot(mine));
  }
  return outcome;
}

/// Sends the fills of lines that lanes have claimed as `at`. Those of a source that ends_when_sent are over when it returns;
/// a claim whose command could not be submitted has failed, and its waiters see that. Collective. Returns the command's word
/// that this lane waits for, `queue pair << 16 | slot`; no_command if there is none. `in_flight`: as Cache::place.
template <thread_group G, class Cache>
PENSTOCK_FN u64 send_fills(G const& g, Cache const& cache, dataset_view const& data, bool claimed, line_id line, found_line at,
                           u32* in_flight) {
  typename Cache::fill fill{};
  if (claimed) {
    fill = cache.make_fill(data, line);
    cache.place(fill, at, in_flight);
  }
  status outcome{};
  switch (data.source()) {
    case fill_source::commands: outcome = submit_fills(g, cache, claimed, fill); break;
    case fill_source::memory:
      if constexpr (has_fills<Cache>) {
        make_fills(g, cache, data, claimed, fill);
      } else {
        copy_fills(g, claimed, fill);
      }
      break;
  }
  if (!claimed) return no_command;
  if (!outcome.ok()) {
    cache.fail_claim(at.entry, outcome, in_flight);
    return no_command;
  }
  data.counters.add(counter::fills, 1);
  data.counters.add(counter::bytes_moved, cache.line_bytes());
  return ends_when_sent(data.source()) ? no_command : fill.target.record->load_command();
}

}  // namespace penstock
