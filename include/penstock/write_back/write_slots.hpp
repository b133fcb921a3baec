// The slots of runs that are under way: a group takes free ones, and retires the runs of those that are over.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// Ends a run that is over: its lines are no longer being written and, if it failed, are dirty again. Collective; this group
/// holds the slot, and still does when it returns.
template <thread_group G, class Cache>
PENSTOCK_FN void retire_run(G const& g, Cache const& cache, u32 number) {
  write_slot& slot = cache.writes.slots[number];
  const status outcome = slot.result();
  u64* const* const entries = cache.writes.row(number) + slot.first;
  for (u32 k = index_in(g); k < slot.lines; k += size(g)) {
    device_ref<u64> word(*entries[k]);
    // Here and not when the line is claimed: a flush that looks for the failure of one write must not find the next one begun.
    cache.record_of(entries[k], word.load(relaxed)).store_failure(outcome);
    if (!outcome.ok()) {
      // Dirty first: between the two nobody may take the line for one at rest.
      if (!entry::dirty(word.fetch_or(entry::dirty_bit, relaxed))) {
        device_ref<u64>(cache.writes.state->lines).fetch_add(1, relaxed);
      }
    }
    word.fetch_and(~entry::writing_bit, release);
  }
  if (is_leader(g) && slot.lines != 0) {
    device_ref<u64>(cache.writes.state->lines).fetch_sub(slot.lines * write_state::one_writing, relaxed);
    device_ref<u32> failures(cache.writes.state->failures);
    if (!outcome.ok()) {
      device_ref<u32>(cache.writes.state->verdict).store(pack(outcome), relaxed);
      failures.fetch_add(1, relaxed);
      const u64 owner = cache.record_of(entries[0], device_ref<u64>(*entries[0]).load(relaxed)).load_owner();
      cache.datasets[frame_record::dataset_of(owner)].counters.add(counter::write_errors, 1);
    } else if (failures.load(relaxed) != 0) {
      failures.store(0, relaxed);
    }
  }
  g.sync();
}

/// Retires the runs of the slots that lanes have taken: short ones side by side. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void retire_taken(G const& g, Cache const& cache, bool got, u32 number) {
  constexpr u32 short_run = 4;
  if (!any(g.ballot(got))) return;
  g.sync();  // each lane's acquire is every member's
  const bool alone = got && cache.writes.slots[number].lines <= short_run;
  if (alone) retire_run(lone_thread(), cache, number);
  for (auto left = g.ballot(got && !alone); any(left);) {
    const u32 lane = lowest(left);
    retire_run(g, cache, static_cast<u32>(g.shfl(number, lane)));
    left = without(left, g.ballot(g.rank() == lane));
  }
}

/// Slots that one look goes over, at most: there may be thousands, and the next look begins behind the last one.
inline constexpr u32 most_slots_looked_at = 128;

/// Retires runs that are over. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void retire_runs(G const& g, Cache const& cache) {
  const u32 slots = cache.writes.slots_count;
  const u32 looks = slots < most_slots_looked_at ? slots : most_slots_looked_at;
  u64 from = 0;
  if (looks < slots && is_leader(g)) from = device_ref<u64>(cache.writes.state->retire_hand).fetch_add(looks, relaxed);
  from = from_leader(g, from);
  for (u32 first = 0; first < looks; first += size(g)) {
    const u32 look = first + index_in(g);
    const u32 mine = static_cast<u32>((from + look) % slots);
    const bool got = look < looks && cache.writes.slots[mine].is(write_phase::answered) &&
                     cache.writes.slots[mine].take(write_phase::answered);
    retire_taken(g, cache, got, mine);
    if (got) cache.writes.slots[mine].set(write_phase::free);
  }
}

/// A slot for each lane that wants one, while there are any that are not under way, retired if it was in use before;
/// slots_count: none. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN u32 take_slots(G const& g, Cache const& cache, bool want) {
  const u32 slots = cache.writes.slots_count;
  const u32 looks = slots < most_slots_looked_at ? slots : most_slots_looked_at;
  const u32 width = size(g);
  u32 found = slots;
  for (u32 looked = 0; looked < looks; looked += width) {
    const auto asking = g.ballot(want && found == slots);
    if (!any(asking)) break;
    u64 from = 0;
    if (is_leader(g)) from = device_ref<u64>(cache.writes.state->slot_hand).fetch_add(width, relaxed);
    const u32 mine = static_cast<u32>((from_leader(g, from) + index_in(g)) % slots);
    write_slot& slot = cache.writes.slots[mine];
    const bool open = slot.is(write_phase::free) || slot.is(write_phase::answered);
    const auto ready = g.ballot(open);
    const bool tries = open && count_below(ready, g.rank()) < count(asking);
    const bool used = tries && slot.is(write_phase::answered) && slot.take(write_phase::answered);
    const auto got = g.ballot(used || (tries && slot.take(write_phase::free)));
    retire_taken(g, cache, used, mine);
    // The n-th lane that asks has the n-th slot.
    const u32 turn = count_below(asking, g.rank());
    const bool served = want && found == slots && turn < count(got);
    const u32 theirs = static_cast<u32>(g.shfl(mine, served ? nth(got, turn) : g.rank()));
    if (served) found = theirs;
    if (any(got)) g.sync();  // each lane's acquire is every member's
  }
  return found;
}

}  // namespace penstock
