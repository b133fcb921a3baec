// One set of a `set_associative` directory: 64 bytes, a header and the entries of seven frames.
//
//   header:  63  60 59              16 15      1   0
//            [ hand ][ claims committed ][  away  ][full]
//
// A line has a home, and lies there or in one of the sets that follow, up to 15 away. Bit d of `away`: lines of this home may
// lie in the d-th set after it. `full`: a claim has found no empty way in any of them; one that has had a line hardly ever is
// empty again. The header orders the claims of the lines at home here, wherever their ways are: one that was made without a
// look at all of these sets as they are now is not committed, and undone (set_claim.hpp).
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/core/memory_access.hpp"

namespace penstock {

inline constexpr u32 set_ways = 7;
inline constexpr u32 set_words = 8;
inline constexpr u32 no_way = set_ways;

namespace set_header {

inline constexpr u32 hand_shift = 60;
inline constexpr u32 claims_shift = 16;
inline constexpr u32 away_mask = 0xfffeu;
inline constexpr u64 claims_mask = (1ull << hand_shift) - (1ull << claims_shift);

/// The way that the next search for a victim begins with.
PENSTOCK_FN constexpr u32 hand(u64 h) { return static_cast<u32>(h >> hand_shift); }
PENSTOCK_FN constexpr u32 away(u64 h) { return static_cast<u32>(h) & away_mask; }
PENSTOCK_FN constexpr u64 claims(u64 h) { return (h & claims_mask) >> claims_shift; }
PENSTOCK_FN constexpr bool full(u64 h) { return (h & 1) != 0; }
/// One more claim; the hand stands at `hand`, lines of this home may be away at the distances of `away`, and no more will go
/// away if it is `full`.
PENSTOCK_FN constexpr u64 committed(u64 h, u32 hand, u32 away, bool full) {
  return static_cast<u64>(hand) << hand_shift | (((h & claims_mask) + (1ull << claims_shift)) & claims_mask) | away |
         static_cast<u32>(full);
}

}  // namespace set_header

/// A set as it was seen, each word at a moment of its own.
struct set_snapshot {
  u64 way[set_ways];
  u64 header;

  /// Four loads at once rather than one after the other: relaxed on a GPU, acquire on a CPU.
  PENSTOCK_FN static set_snapshot of(u64 const* set) {
    auto const* pieces = reinterpret_cast<piece16 const*>(set);
    const piece16 a = load_piece(pieces), b = load_piece(pieces + 1), c = load_piece(pieces + 2), d = load_piece(pieces + 3);
    return {{a.high, b.low, b.high, c.low, c.high, d.low, d.high}, a.low};
  }

  /// The way that holds the line of a tag and its word; `no_way` if none does. A valid one comes first: one that is being
  /// filled may belong to a claim that will not be committed. `tag` and `tag_mask` as in the low half of an entry.
  PENSTOCK_FN u32 find(u32 tag, u32 tag_mask, u64& word) const {
    u32 found = no_way;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      const bool valid = ((static_cast<u32>(way[w]) ^ (tag | static_cast<u32>(line_state::valid))) & (tag_mask | 3u)) == 0;
      if (valid) found = w;
      if (valid) word = way[w];
    }
    if (found != no_way) return found;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      const bool used = ((static_cast<u32>(way[w]) ^ tag) & tag_mask) == 0 && (way[w] & 3u) != 0;
      if (used) found = w;
      if (used) word = way[w];
    }
    return found;
  }

  /// Whether some way has a line whose home is so many sets before this one. `distance_mask`: of a place.
  PENSTOCK_FN bool has_from(u32 distance, u32 distance_mask) const {
    bool found = false;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < set_ways; ++w) {
      found |= (way[w] >> entry::identity_shift & distance_mask) == distance && (way[w] & 3u) != 0;
    }
    return found;
  }
};

}  // namespace penstock
