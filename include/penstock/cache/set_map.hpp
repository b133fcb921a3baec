// Where a line may be in a `set_associative` directory: in which set, and under which tag (PROTOCOLS.md §2, "Set and tag").
//
// `mix` is a bijection on L bits, so lines differ as their mixed numbers x do. A set has a run of consecutive x, no longer than
// 2^P; within it the low P bits of x, the tag, name the line exactly. The number of sets need not be a power of two.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"

namespace penstock {

/// Trivially copyable; `sets` is 0 in a cache that has no sets.
struct set_map {
  u64 multiplier = 1;  ///< odd, about 2^L / 1.618: lines that follow each other land far apart
  u64 line_mask = 0;   ///< 2^L - 1
  u32 sets = 0;
  u32 fold_shift = 1;  ///< half of L
  u32 cut_shift = 0;   ///< what of x is beyond 32 bits
  u32 set_shift = 0;   ///< the rest of L

  /// The map of `lines` lines, 1 to 2^40, to `sets` sets.
  static constexpr set_map of(u64 lines, u32 sets) {
    const u32 bits = ceil_log2(lines);
    set_map map;
    map.multiplier = bits == 0 ? 1 : 0x9e3779b97f4a7c15ull >> (64 - bits) | 1;
    map.line_mask = (1ull << bits) - 1;
    map.sets = sets;
    map.fold_shift = (bits + 1) / 2;
    map.cut_shift = bits > 32 ? bits - 32 : 0;
    map.set_shift = bits - map.cut_shift;
    return map;
  }

  /// Bits that a tag needs, from the longest run that a set has.
  constexpr u32 tag_bits() const { return ceil_log2(ceil_div(1ull << set_shift, sets) << cut_shift); }

  PENSTOCK_FN u64 mix(u64 line) const {
    const u64 x = line * multiplier & line_mask;
    return x ^ x >> fold_shift;
  }
  /// REQUIRES: x was mixed.
  PENSTOCK_FN u64 set_of(u64 x) const { return static_cast<u64>(static_cast<u32>(x >> cut_shift)) * sets >> set_shift; }
};

}  // namespace penstock
