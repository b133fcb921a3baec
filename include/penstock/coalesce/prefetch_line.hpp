// Asking for lines ahead of their use, as many as may be in flight for that.
#pragma once

#include "penstock/coalesce/send_fills.hpp"
#include "penstock/core/ordinal.hpp"

namespace penstock {

/// Why a line is brought in ahead of its use.
enum class fill_purpose : u32 {
  guess,  ///< a prefetch: of no more worth than an unused line
  asked,  ///< its requester comes back for it: it counts as used, so that it is still there
};

/// Asks for lines ahead of their use. Never waits for a frame and holds no pin; a line that is there, on its way or without a
/// free frame is left alone, and so is everything beyond the limit of what may be in flight ahead of need: for a lane whose
/// line was left for that, it is true. Collective: one line per lane that wants one.
template <thread_group G, class Cache>
PENSTOCK_COLD bool prefetch_line(G g, Cache const& cache, u32 dataset, bool want, line_id line, fill_purpose purpose) {
  dataset_view const& data = cache.datasets[dataset];
  if (ends_when_sent(data.source())) return false;
  const auto peers = peers_of(g, cache, want, line);
  u32& in_flight = cache.prefetches_in_flight[executor_ordinal() & (cache.prefetch_shards - 1)];
  bool claimed = false, beyond = false;
  victim_search search;
  search.most_in_use = victim_search::brief;
  const bool leads = want && lowest(peers) == g.rank();
  found_line at = leads ? cache.directory.glance(line) : found_line{};
  if (leads && purpose == fill_purpose::asked && at.state() == line_state::valid) cache.reference(at);
  if (leads && at.state() == line_state::empty) {
    beyond = device_ref<u32>(in_flight).fetch_add(1, relaxed) >= cache.prefetch_limit;
    if (!beyond) claimed = cache.claim_empty(data, line, 0, at, search) == access_step::claimed;
    if (!claimed) device_ref<u32>(in_flight).fetch_sub(1, relaxed);
  }
  count_search(g, data, search);
  if (!any(g.ballot(claimed))) return beyond;
  if (claimed && purpose == fill_purpose::asked) device_ref<u64>(*at.entry).fetch_or(entry::referenced_bit, relaxed);
  send_fills(g, cache, data, claimed, line, at, &in_flight);
  if (claimed) data.counters.add(counter::prefetches, 1);
  return beyond;
}

}  // namespace penstock
