// One line for each lane of a group, to be read or stored into: what a group calls that has missed.
#pragma once

#include "penstock/coalesce/line_request.hpp"
#include "penstock/coalesce/line_request_wait.hpp"
#include "penstock/coalesce/lone_fill.hpp"

namespace penstock {

/// Calls use(frame address) once in each lane that wants a line, under a pin, and returns how that went. `begun`: by the lane
/// that leads. Collective.
template <thread_group G, class Cache, class Use>
PENSTOCK_COLD status read_lines(G g, Cache const& cache, u32 dataset, bool want, line_id line, lone_fill begun,
                                Use const& use) {
  const auto read = [&](u64 frame) {
    use(frame);
    return false;
  };
  line_request<G, Cache> request(g, cache, dataset, want, line);
  request.go_on_from(begun);
  return request.access(read);
}

/// The same. `at`: what the directory said of this lane's line a moment ago. Where all lanes want one line that is in no frame,
/// one of them brings it in, and most of the time there is nothing left to do but to read it. Collective.
template <thread_group G, class Cache, class Use>
PENSTOCK_FN status read_line(G const& g, Cache const& cache, u32 dataset, bool want, line_id line, found_line at,
                             Use const& use) {
  const auto wanting = g.ballot(want);
  const u32 leader = lowest(wanting);
  const u64 leaders_line = g.shfl(value(line), leader);
  const bool others = any(g.ballot(want && value(line) != leaders_line));
  lone_fill begun;
  if (!others && (cache.coalesces || count(wanting) == 1)) {
    if (g.rank() == leader) begun = fill_alone(cache, cache.datasets[dataset], line, at, size(g), true);
    const u64 frame = g.shfl(begun.frame, leader);
    if (frame != 0) {
      g.sync();  // the leader's acquire is every member's
      if (want) use(frame);
      g.sync();
      if (g.rank() == leader) {
        cache.unpin(begun.entry);
        if (begun.queued) cache.admission.give_back(1);
      }
      return {};
    }
  }
  return read_lines(g, cache, dataset, want, line, begun, use);
}

/// The same for lanes that store: use(frame address) returns whether it did. Collective; returns before anything of it is in
/// storage.
template <thread_group G, class Cache, class Use>
PENSTOCK_COLD status write_line(G g, Cache const& cache, u32 dataset, bool want, line_id line, Use const& use) {
  line_request<G, Cache, line_use::write> request(g, cache, dataset, want, line);
  request.start_alone(true);
  return request.access(use);
}

}  // namespace penstock
