// A claim in a `direct` directory: the line's own entry is claimed first, then a frame is found for it, which means to take the
// frame from the line that has it.
#pragma once

#include "penstock/cache/access_step.hpp"
#include "penstock/cache/dataset_view.hpp"
#include "penstock/cache/directory.hpp"
#include "penstock/cache/frame_record.hpp"

namespace penstock {

/// What came of an attempt to take a frame.
enum class eviction : u32 {
  taken,
  spared,     ///< by the policy, for this time
  unwritten,  ///< dirty, or being written
  in_use,     ///< pinned or in flight, or another thread was faster
};

/// Takes a frame from the line that its record names, if that line is at rest and the policy does not spare it.
template <class Cache>
PENSTOCK_FN eviction evict(Cache const& cache, u32 frame, u64 owner) {
  u64& word = cache.directory.entries[frame_record::line_of(owner)];
  u64 e = device_ref<u64>(word).load(acquire);
  const line_state now = entry::state(e);
  const bool holds_it = (now == line_state::valid || now == line_state::failed) && cache.directory.layout.place(e) == frame;
  if (!holds_it || entry::pins(e) != 0) return eviction::in_use;
  if (!entry::at_rest(e)) return eviction::unwritten;
  // What is streamed has no second turn.
  if (cache.advised(owner) != advice::stream && cache.policy.spares(word, e)) return eviction::spared;
  const bool won = device_ref<u64>(word).compare_exchange_strong(e, cache.directory.layout.evicted(e), acquire, relaxed);
  return won ? eviction::taken : eviction::in_use;
}

/// A frame below `part` that no line had so far; `part` or more if there is none.
template <class Cache>
PENSTOCK_FN u64 take_fresh_frame(Cache const& cache, u32 part) {
  device_ref<u64> next(*cache.next_fresh);
  if (part == cache.frames) return next.fetch_add(1, relaxed);
  u64 fresh = next.load(relaxed);
  // Exactly: one that is taken beyond the part would be lost to all. A thread that fails has seen another succeed.
  while (fresh < part && !next.compare_exchange_weak(fresh, fresh + 1, relaxed, relaxed)) {}
  return fresh;
}

/// A frame below `part` that some line gave up; `cache.frames` if all are in use, or so many as the search goes by. Where lines
/// are advised, a search first looks for those that are streamed, then for any that are not kept, then for any: it passes by a
/// bounded number of better ones, and in its second half by none.
template <class Cache>
PENSTOCK_FN u32 take_victim(Cache const& cache, dataset_view const& data, u32 part, u32 most_in_use) {
  const u64 choosy = cache.spare_kept == 0 ? 0 : cache.policy.search_limit();
  u32 passed = 0, in_use = 0;
  for (u64 looked = 0; looked < choosy + cache.policy.search_limit(); ++looked) {
    const u32 candidate = cache.policy.candidate();
    const u32 frame = candidate < part ? candidate : candidate % part;
    const u64 owner = cache.records[frame].load_owner();
    if (owner == frame_record::nobody) continue;
    const advice most = passed < cache.spare_normal ? advice::stream
                        : passed < cache.spare_kept ? advice::normal
                                                    : advice::keep;
    if (looked < choosy && cache.advised(owner) > most) {
      ++passed;
      continue;
    }
    const eviction came = evict(cache, frame, owner);
    if (came == eviction::taken) {
      data.counters.add(counter::evictions, 1);
      return frame;
    }
    if (came != eviction::in_use || ++in_use <= most_in_use) continue;
    if (looked >= choosy || passed == 0) break;
    looked = choosy;  // what it has passed by may be had
    in_use = 0;
  }
  return cache.frames;
}

/// A frame below `part` for this thread alone; `cache.frames` if there is none.
template <class Cache>
PENSTOCK_FN u32 take_frame(Cache const& cache, dataset_view const& data, u32 part, victim_search& search) {
  const u64 fresh = take_fresh_frame(cache, part);
  if (fresh < part) return static_cast<u32>(fresh);
  return search.time([&] { return take_victim(cache, data, part, search.most_in_use); });
}

/// Gives a line that this thread has just claimed with `pins` pins its frame, below `part`: `claimed`, or `no_frame`.
template <class Cache>
PENSTOCK_FN access_step place_claimed(Cache const& cache, dataset_view const& data, line_id line, u32 part, found_line& at,
                                      u64 pins, victim_search& search) {
  const u32 frame = take_frame(cache, data, part, search);
  if (frame == cache.frames) {
    // No victim, no claim (W3, W4): the threads that joined meanwhile see an empty line and retry.
    device_ref<u64>(*at.entry).fetch_sub(1 + pins * entry::one_pin, release);
    return access_step::no_frame;
  }
  cache.records[frame].store_owner(data.index, value(line));
  const u64 place = static_cast<u64>(frame) << entry::identity_shift;
  add_relaxed(*at.entry, place);
  at.word += place;
  return access_step::claimed;
}

}  // namespace penstock
