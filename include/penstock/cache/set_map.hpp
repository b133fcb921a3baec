// Where a line may be in a `set_associative` directory: in which set, and under which tag (PROTOCOLS.md §2, "Set and tag").
//
// `mix` is a bijection on L bits, so lines differ as their mixed numbers x do. A set has a run of consecutive x, no longer than
// 2^P; within it the low P bits of x, the tag, name the line exactly. The number of sets need not be a power of two.
//
// Every hit does this, and hits are bound by the instructions they issue: all is 32-bit arithmetic. Of a line number of more
// than 32 bits the upper ones are mixed into the lower and then put below them, so that sets go by bits that all lines mix.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"

namespace penstock {

/// Trivially copyable; `sets` is 0 in a cache that has no sets.
struct set_map {
  u32 multiplier = 1;        ///< odd, about 2^32 / 1.618: lines that follow each other land far apart
  u32 upper_multiplier = 0;  ///< of a line number's bits beyond the lower
  u32 lower_mask = 0;        ///< of the lower bits: all of L, at most 32
  u32 lower_bits = 0;
  u32 upper_bits = 0;  ///< the rest of L
  u32 fold_shift = 1;  ///< half of the lower bits
  u32 top_shift = 0;   ///< brings the lower bits to the top of 32
  u32 sets = 0;

  /// The map of `lines` lines, 1 to 2^40, to `sets` sets.
  static constexpr set_map of(u64 lines, u32 sets) {
    const u32 bits = ceil_log2(lines);
    set_map map;
    map.lower_bits = bits < 32 ? bits : 32;
    map.upper_bits = bits - map.lower_bits;
    map.lower_mask = static_cast<u32>((1ull << map.lower_bits) - 1);
    map.multiplier = bits == 0 ? 1 : 0x9e3779b9u >> (32 - map.lower_bits) | 1;
    map.upper_multiplier = map.upper_bits == 0 ? 0 : 0x85ebca6bu;
    map.fold_shift = (map.lower_bits + 1) / 2;
    map.top_shift = bits == 0 ? 0 : 32 - map.lower_bits;
    map.sets = sets;
    return map;
  }

  /// Bits that a tag needs, from the longest run that a set has.
  constexpr u32 tag_bits() const { return ceil_log2(ceil_div(1ull << lower_bits, sets) << upper_bits); }

  PENSTOCK_FN u32 mix_lower(u32 lower, u32 upper) const {
    const u32 x = (lower * multiplier + upper * upper_multiplier) & lower_mask;
    return x ^ x >> fold_shift;
  }
  PENSTOCK_FN u32 upper_of(u64 line) const { return upper_bits == 0 ? 0 : static_cast<u32>(line >> 32); }
  PENSTOCK_FN u32 set_of_lower(u32 mixed) const { return static_cast<u32>(static_cast<u64>(mixed << top_shift) * sets >> 32); }
  /// The low 32 bits of x, which is more than a tag has.
  PENSTOCK_FN u32 tag_of_lower(u32 mixed, u32 upper) const { return mixed << upper_bits | upper; }

  PENSTOCK_FN u64 mix(u64 line) const {
    const u32 upper = upper_of(line);
    return static_cast<u64>(mix_lower(static_cast<u32>(line), upper)) << upper_bits | upper;
  }
  /// REQUIRES: x was mixed.
  PENSTOCK_FN u64 set_of(u64 x) const { return set_of_lower(static_cast<u32>(x >> upper_bits)); }
};

}  // namespace penstock
