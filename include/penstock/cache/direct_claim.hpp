// A claim in a `direct` directory: the line's own entry is claimed first, then a frame is found for it, which means to take the
// frame from the line that has it.
#pragma once

#include "penstock/cache/access_step.hpp"
#include "penstock/cache/dataset_view.hpp"
#include "penstock/cache/directory.hpp"
#include "penstock/cache/frame_record.hpp"

namespace penstock {

/// Takes a frame from its line, if that line is at rest and the policy does not spare it.
template <class Cache>
PENSTOCK_FN bool evict(Cache const& cache, u32 frame) {
  const u64 owner = cache.records[frame].load_line();
  if (owner == frame_record::no_line) return false;
  u64& word = cache.directory.entries[owner];
  u64 e = device_ref<u64>(word).load(acquire);
  const line_state now = entry::state(e);
  const bool holds_it = (now == line_state::valid || now == line_state::failed) && cache.directory.layout.place(e) == frame;
  if (!holds_it || !entry::at_rest(e) || cache.policy.spares(word, e)) return false;
  return device_ref<u64>(word).compare_exchange_strong(e, cache.directory.layout.evicted(e), acq_rel, relaxed);
}

/// A frame for this thread alone; `cache.frames` if all are pinned or in flight.
template <class Cache>
PENSTOCK_FN u32 take_frame(Cache const& cache, dataset_view const& data) {
  if (device_ref<u64>(*cache.next_fresh).load(relaxed) < cache.frames) {
    const u64 fresh = device_ref<u64>(*cache.next_fresh).fetch_add(1, relaxed);
    if (fresh < cache.frames) return static_cast<u32>(fresh);
  }
  for (u64 looked = 0; looked < cache.policy.search_limit(); ++looked) {
    const u32 frame = cache.policy.candidate();
    if (!evict(cache, frame)) continue;
    data.counters.add(counter::evictions, 1);
    return frame;
  }
  return cache.frames;
}

/// Gives a line that this thread has just claimed with `pins` pins its frame: `claimed`, or `no_frame`.
template <class Cache>
PENSTOCK_FN access_step place_claimed(Cache const& cache, dataset_view const& data, line_id line, u64& word, u64 pins) {
  const u32 frame = take_frame(cache, data);
  if (frame == cache.frames) {
    // No victim, no claim (W3, W4): those who joined meanwhile see an empty line and start over.
    device_ref<u64>(word).fetch_sub(1 + pins * entry::one_pin, release);
    return access_step::no_frame;
  }
  cache.records[frame].store_line(value(line));
  device_ref<u64>(word).fetch_add(static_cast<u64>(frame) << entry::identity_shift, relaxed);
  order_claim_before_bytes();
  return access_step::claimed;
}

}  // namespace penstock
