// One set of a `set_associative` directory: 64 bytes, a header and the entries of seven frames.
//
//   header:  63  56 55                      0
//            [ hand ][ claims committed      ]
//
// The header orders the claims of a set: one that was made without a look at the set as it is now is not committed, and undone
// (set_claim.hpp).
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/core/memory_access.hpp"

namespace penstock {

inline constexpr u32 set_ways = 7;
inline constexpr u32 set_words = 8;
inline constexpr u32 no_way = set_ways;

namespace set_header {

inline constexpr u32 hand_shift = 56;
inline constexpr u64 claims_mask = (1ull << hand_shift) - 1;

/// The way that the next search for a victim begins with.
PENSTOCK_FN constexpr u32 hand(u64 h) { return static_cast<u32>(h >> hand_shift); }
/// One more claim, of `way`; the hand stands behind it.
PENSTOCK_FN constexpr u64 committed(u64 h, u32 way) {
  return ((h & claims_mask) + 1) | static_cast<u64>((way + 1) % set_ways) << hand_shift;
}

}  // namespace set_header

/// The entries of a set as they were seen, each at a moment of its own.
struct set_snapshot {
  u64 way[set_ways];

  /// Four loads at once rather than one after the other: relaxed on a GPU, acquire on a CPU.
  PENSTOCK_FN static set_snapshot of(u64 const* set) {
    auto const* pieces = reinterpret_cast<piece16 const*>(set);
    const piece16 a = load_piece(pieces), b = load_piece(pieces + 1), c = load_piece(pieces + 2), d = load_piece(pieces + 3);
    return {{a.high, b.low, b.high, c.low, c.high, d.low, d.high}};
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
};

}  // namespace penstock
