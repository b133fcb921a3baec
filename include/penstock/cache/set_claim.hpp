// A claim in a `set_associative` directory: one compare-and-swap takes a way of the line's home from the line that has it, or a
// way near it that no line has had yet. The claim is committed at the home's header before anything is submitted.
//
// Why a line is in one frame. The header orders the commits of all lines that are at home there. It names the sets that may
// have one of them: a commit adds the set of its own claim, and takes out those in which it has seen none. A claim is committed
// only if no other was since the header was loaded, which is before the ways of the sets that it names were looked at. If
// another claim of the same line was committed earlier, it is visible to that look (claim, then header, release; header,
// acquire, then look): its set was named by its commit, and by each one that came after it and saw it there. If later, that
// commit fails. So, too, no set is taken out in which a claim is not committed yet: that commit fails.
#pragma once

#include "penstock/cache/access_step.hpp"
#include "penstock/cache/dataset_view.hpp"
#include "penstock/cache/directory.hpp"
#include "penstock/cache/frame_record.hpp"

namespace penstock {

/// How a set would give a frame away: its ways in the order in which they are taken.
struct victim_order {
  u32 hand;
  u32 ways = set_ways;            ///< that may be taken: those before this one
  u32 advised = all_ways_normal;  ///< of the lines that the ways have: two bits each

  static constexpr u32 all_ways_normal = 0x1555 * static_cast<u32>(advice::normal);
  static constexpr u32 turn = 8;  ///< ranks of one kind of line: more than a set has ways
  static constexpr u32 never = 7 * turn;

  /// The least of a set is taken: an empty one, else a streamed one, else the first from the hand on that is unused since the
  /// hand went by, else the first that can be had; then those that are kept, likewise. All threads that have seen the same
  /// agree, so a herd on one line claims one way, not seven.
  PENSTOCK_FN u32 rank(u32 way, u64 e) const {
    if (way >= ways || !entry::at_rest(e) || entry::state(e) == line_state::filling) return never;
    if (entry::state(e) == line_state::empty) return from_hand(way);
    return from_hand(way) + turn * (1 + 2 * static_cast<u32>(advice_of(way)) + (has_turn_left(way, e) ? 1 : 0));
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

  /// The hand went by all that are referenced and come before the victim: their second turn is over. It does not stop at what
  /// is kept while something else can be had, and is not needed to find what is streamed.
  PENSTOCK_FN void take_turns(u64* set, set_snapshot const& seen, u32 way, u64 e) const {
    if (entry::state(e) == line_state::empty || advice_of(way) == advice::stream) return;
    const bool all = has_turn_left(way, e);
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      const bool passed = w != way && w < ways && advice_of(w) <= advice_of(way) && (all || from_hand(w) < from_hand(way));
      if (passed && (seen.way[w] & entry::referenced_bit) != 0) {
        device_ref<u64>(set[1 + w]).fetch_and(~entry::referenced_bit, relaxed);
      }
    }
  }

 private:
  PENSTOCK_FN u32 from_hand(u32 way) const { return way >= hand ? way - hand : way + set_ways - hand; }
  PENSTOCK_FN advice advice_of(u32 way) const { return static_cast<advice>(advised >> 2 * way & 3u); }
  PENSTOCK_FN bool has_turn_left(u32 way, u64 e) const {
    return (e & entry::referenced_bit) != 0 && advice_of(way) != advice::stream;
  }
};

/// How the lines that a set's frames have are advised, two bits each.
template <class Cache>
PENSTOCK_FN u32 advice_in_set(Cache const& cache, u64 const* set) {
  if (cache.spare_kept == 0) return victim_order::all_ways_normal;
  frame_record* const records = cache.records + cache.directory.frame_of(set + 1, 0);
  u32 advised = 0;
  for (u32 w = 0; w < set_ways; ++w) advised |= static_cast<u32>(cache.advised(records[w].load_owner())) << 2 * w;
  return advised;
}

/// Where a line finds a way: how many sets from home, which way, and its word as it was seen.
struct found_way {
  u32 distance = 0;
  u32 way = no_way;
  u64 word = 0;
};

/// The first empty way in the sets near a home.
template <class Cache>
PENSTOCK_FN found_way empty_way_near(Cache const& cache, u64* home) {
  found_way found;
  while (found.way == no_way && ++found.distance < cache.directory.reach()) {
    const set_snapshot seen = set_snapshot::of(cache.directory.set_after(home, found.distance));
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      const bool is_free = entry::state(seen.way[w]) == line_state::empty && entry::at_rest(seen.way[w]);
      if (is_free) found = {found.distance, w, seen.way[w]};
    }
  }
  return found;
}

/// An empty way at home; an empty one near it, unless a claim has looked for one in vain (`full`: this one has, too); then the
/// one that home gives away. A line that has a place stays in it, so in a cache that has room for all its lines each finds one.
/// Of a dataset that has a part of the cache each set has a part, so its lines stay at home.
template <class Cache>
PENSTOCK_FN found_way choose_way(Cache const& cache, dataset_view const& data, u64* home, set_snapshot const& seen,
                                 victim_order const& order, bool& full) {
  found_way at_home;
  at_home.way = order.victim(seen, at_home.word);
  const bool is_free = at_home.way != no_way && entry::state(at_home.word) == line_state::empty;
  if (is_free || full || !cache.looks_up || data.part < set_ways) return at_home;
  const found_way away = empty_way_near(cache, home);
  full = away.way == no_way;
  return full ? at_home : away;
}

/// Claims a way for a line that is in none, with `pins` pins: `claimed`, `no_frame`, or `again`. `at` is then the claim, or
/// what another thread has claimed for the line meanwhile, or without an entry.
template <class Cache>
PENSTOCK_COLD access_step claim_in_set(Cache const& cache, dataset_view const& data, line_id line, u64 pins, found_line& at) {
  constexpr u32 attempts = 8;  // as many as a set has winners before all its ways are taken
  directory_view const& directory = cache.directory;
  const u64 x = directory.map.mix(value(line));
  // Without a look-up any set will do.
  u64* const home =
      cache.looks_up ? directory.home_of(x) : directory.entries + set_words * (cache.policy.candidate() / set_ways);
  for (u32 attempt = 0; attempt < attempts; ++attempt) {
    // Before the look at the ways: a commit that this look may have missed makes ours fail.
    u64 header = device_ref<u64>(home[0]).load(acquire);
    const set_snapshot seen = set_snapshot::of(home);
    at = cache.looks_up ? directory.find_in(home, seen, x, 0) : found_line{};
    u32 away = 0;  // where lines of this home are now
    for (u32 rest = set_header::away(header); at.entry == nullptr && rest != 0; rest &= rest - 1) {
      const u32 distance = lowest_bit(rest);
      u64* const set = directory.set_after(home, distance);
      const set_snapshot beside = set_snapshot::of(set);
      at = directory.find_in(set, beside, x, distance);
      if (beside.has_from(distance, directory.reach() - 1)) away |= 1u << distance;
    }
    if (at.entry != nullptr) return access_step::again;
    const victim_order order{set_header::hand(header), data.part, advice_in_set(cache, home)};
    bool full = set_header::full(header);
    const found_way chosen = choose_way(cache, data, home, seen, order, full);
    if (chosen.way == no_way) return access_step::no_frame;
    u64& word = directory.set_after(home, chosen.distance)[1 + chosen.way];
    const u64 e = chosen.word, claim = directory.layout.claimed(e, pins, directory.place_of(x, chosen.distance));
    u64 expected = e;
    if (!device_ref<u64>(word).compare_exchange_strong(expected, claim, acquire, relaxed)) continue;
    const bool at_home = chosen.distance == 0, was_empty = entry::state(e) == line_state::empty;
    if (!was_empty && cache.looks_up) data.counters.add(counter::evictions, 1);
    const u64 next = set_header::committed(header, at_home ? (chosen.way + 1) % set_ways : set_header::hand(header),
                                           at_home ? away : away | 1u << chosen.distance, full);
    if (!device_ref<u64>(home[0]).compare_exchange_strong(header, next, acq_rel, relaxed)) {
      // The threads that joined meanwhile see an empty line and retry.
      device_ref<u64>(word).fetch_sub(1 + pins * entry::one_pin, release);
      continue;
    }
    at = {&word, claim};
    if (!was_empty) order.take_turns(home, seen, chosen.way, e);
    cache.records[directory.frame_of(&word, claim)].store_owner(data.index, value(line));
    return access_step::claimed;
  }
  return access_step::again;
}

}  // namespace penstock
