// A thread_group is whatever set of threads walks through device code together: part of a warp, a warp, a block, one CPU
// thread, or in tests an emulated warp. Six operations are all that the layers above know of it.
//
// `rank` is this thread's bit in `members`. `match_any`, `ballot`, `shfl` and `sync` are collective: every member calls them,
// in the same order. Only `sync` orders memory: what a member wrote before it, every member sees after it.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"

#include <concepts>

namespace penstock {

/// Set of members, one bit per rank, of groups of up to 32 threads.
using lane_mask = u32;

// What device code asks of a mask; group/block.hpp has the same functions for its wider one.
PENSTOCK_FN inline bool any(lane_mask m) { return m != 0; }
PENSTOCK_FN inline u32 count(lane_mask m) { return bit_count(m); }
/// REQUIRES: any(m).
PENSTOCK_FN inline u32 lowest(lane_mask m) { return lowest_bit(m); }
PENSTOCK_FN inline bool contains(lane_mask m, u32 rank) { return (m >> rank & 1u) != 0; }
/// How many members of m have a smaller rank.
PENSTOCK_FN inline u32 count_below(lane_mask m, u32 rank) { return bit_count(m & ((1u << rank) - 1u)); }
/// Rank of the member that has n members below it. REQUIRES: n < count(m).
PENSTOCK_FN inline u32 nth(lane_mask m, u32 n) {
  const lane_mask down = m >> lowest(m);
  if ((down & (down + 1)) == 0) return lowest(m) + n;  // no holes
  for (; n != 0; --n) m &= m - 1;
  return lowest(m);
}
/// Members of a that are not in b.
PENSTOCK_FN inline lane_mask without(lane_mask a, lane_mask b) { return a & ~b; }

/// How many members, counted from the lowest, are in `ok` without a gap.
template <class Mask>
PENSTOCK_FN u32 leading(Mask const& members, Mask const& ok) {
  const Mask missing = without(members, ok);
  return any(missing) ? count_below(members, lowest(missing)) : count(members);
}

template <class G>
concept thread_group = requires(G const& g, u64 v, bool p, u32 rank) {
  { g.rank() } -> std::convertible_to<u32>;
  { g.members() };
  { g.match_any(v) } -> std::same_as<decltype(g.members())>;
  { g.ballot(p) } -> std::same_as<decltype(g.members())>;
  { g.shfl(v, rank) } -> std::same_as<u64>;
  { g.sync() };
};

template <thread_group G>
PENSTOCK_FN u32 size(G const& g) {
  return count(g.members());
}

/// Position among the members, 0 to size - 1; equal to the rank where the mask has no holes.
template <thread_group G>
PENSTOCK_FN u32 index_in(G const& g) {
  return count_below(g.members(), g.rank());
}

template <thread_group G>
PENSTOCK_FN bool is_leader(G const& g) {
  return g.rank() == lowest(g.members());
}

/// Whether p holds for a member. Collective.
template <thread_group G>
PENSTOCK_FN bool any_of(G const& g, bool p) {
  return any(g.ballot(p));
}

/// What each member has stored, every member sees afterwards: as `sync`, which must not stand behind a call that brings a group
/// through waits of its own (PROTOCOLS.md, "Lanes of a warp"). Collective.
template <thread_group G>
PENSTOCK_FN void converge_after_call(G const& g) {
#if PENSTOCK_ON_DEVICE
  __threadfence_block();
  (void)g.ballot(true);
  __threadfence_block();
#else
  g.sync();
#endif
}

/// The leader's value, for all members. Collective.
template <thread_group G>
PENSTOCK_FN u64 from_leader(G const& g, u64 v) {
  return g.shfl(v, lowest(g.members()));
}

}  // namespace penstock
