// A claim in a `set_associative` directory: one compare-and-swap takes a way of the line's set from the line that has it. The
// claim is committed at the set's header before anything is submitted.
//
// Why a line is in one frame. The header orders the commits of a set. A claim is committed only if no other was since the
// header was loaded, which is before the ways were looked at. If another claim of the same line was committed earlier, it is
// visible to that look (claim, then header, release; header, acquire, then look). If later, that commit fails.
#pragma once

#include "penstock/cache/access_step.hpp"
#include "penstock/cache/dataset_view.hpp"
#include "penstock/cache/directory.hpp"
#include "penstock/cache/frame_record.hpp"

namespace penstock {

/// How a set would give a frame away: its ways in the order in which they are taken.
struct victim_order {
  u32 hand;

  static constexpr u32 unreferenced = 8, referenced = 16, never = 24;

  /// The least of a set is taken: an empty one, else the first from the hand on that nobody has used since the hand went by,
  /// else the first that can be had. All who have seen the same agree, so a herd on one line claims one way, not seven.
  PENSTOCK_FN u32 rank(u32 way, u64 e) const {
    const u32 from_hand = way >= hand ? way - hand : way + set_ways - hand;
    if (!entry::at_rest(e) || entry::state(e) == line_state::filling) return never;
    if (entry::state(e) == line_state::empty) return from_hand;
    return from_hand + ((e & entry::referenced_bit) == 0 ? unreferenced : referenced);
  }

  /// The way to take and its word; `no_way` when all are pinned, in flight or to be written.
  PENSTOCK_FN u32 victim(set_snapshot const& seen, u64& word) const {
    u32 least = never;
    u32 found = no_way;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      const u32 r = rank(w, seen.way[w]);
      if (r < least) {
        least = r;
        found = w;
        word = seen.way[w];
      }
    }
    return found;
  }

  /// The hand went by all that are referenced and come before the victim: their second turn is over.
  PENSTOCK_FN void take_turns(u64* set, set_snapshot const& seen, u32 way, u64 e) const {
    if (entry::state(e) == line_state::empty) return;
    const bool all = (e & entry::referenced_bit) != 0;
    const u32 last = rank(way, e) % unreferenced;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      const bool passed = w != way && (all || rank(w, seen.way[w]) % unreferenced < last);
      if (passed && (seen.way[w] & entry::referenced_bit) != 0) {
        device_ref<u64>(set[1 + w]).fetch_and(~entry::referenced_bit, relaxed);
      }
    }
  }
};

/// Claims a way for a line that is in none, with `pins` pins: `claimed`, `no_frame`, or `again`. `at` is then the claim, or
/// what somebody else has claimed for the line meanwhile, or without an entry.
template <class Cache>
PENSTOCK_COLD access_step claim_in_set(Cache const& cache, dataset_view const& data, line_id line, u64 pins, found_line& at) {
  constexpr u32 attempts = 8;  // as many as a set has winners before all its ways are taken
  directory_view const& directory = cache.directory;
  const u64 x = directory.map.mix(value(line));
  u64* const set = directory.set_of(x);
  for (u32 attempt = 0; attempt < attempts; ++attempt) {
    // Before the look at the ways: a commit that this look may have missed makes ours fail.
    u64 header = device_ref<u64>(set[0]).load(acquire);
    const set_snapshot seen = set_snapshot::of(set);
    at = directory.find_in(set, seen, x);
    if (at.entry != nullptr) return access_step::again;
    const victim_order order{set_header::hand(header)};
    u64 e = 0;
    const u32 way = order.victim(seen, e);
    if (way == no_way) return access_step::no_frame;
    u64& word = set[1 + way];
    const u64 claim = directory.layout.claimed(e, pins, x & ((1ull << directory.layout.place_bits) - 1));
    u64 expected = e;
    if (!device_ref<u64>(word).compare_exchange_strong(expected, claim, acq_rel, relaxed)) continue;
    if (entry::state(e) != line_state::empty) data.counters.add(counter::evictions, 1);
    if (!device_ref<u64>(set[0]).compare_exchange_strong(header, set_header::committed(header, way), acq_rel, relaxed)) {
      // Those who joined meanwhile see an empty line and start over.
      device_ref<u64>(word).fetch_sub(1 + pins * entry::one_pin, release);
      continue;
    }
    at = {&word, claim};
    order.take_turns(set, seen, way, e);
    cache.records[directory.frame_of(&word, claim)].store_line(value(line));
    order_claim_before_bytes();
    return access_step::claimed;
  }
  return access_step::again;
}

}  // namespace penstock
