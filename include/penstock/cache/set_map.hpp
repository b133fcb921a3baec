// Where a line may be in a `set_associative` directory: which set is its home, how far from it the line may lie, and under
// which tag (PROTOCOLS.md §2, "Set and tag").
//
// `mix` is a bijection on L bits, so lines differ as their mixed numbers x do. A set is the home of a run of consecutive x, no
// longer than 2^T; within it the low T bits of x, the tag, name the line exactly. The number of sets need not be a power of
// two. A line that finds no room at home lies in one of the 2^R - 1 sets that follow; its entry says how far from home.
//
// Lines that follow each other, as many as a cache has room for, come to the sets as evenly as can be: their x are multiples of
// m modulo 2^L, and where all partial quotients of m / 2^L are small, so is the discrepancy of any run of multiples
// (Niederreiter 1992, theorem 3.4; the golden ratio, cut to L bits, has large ones). At 80 % of the frames all find room at
// home; of lines chosen at random, 5.5 % do not (seven ways), as by any hash, and lie away.
//
// Every hit does this, and hits are bound by the instructions they issue: all is 32-bit arithmetic. Of a line number of more
// than 32 bits the upper ones are mixed into the lower and then put below them, so that sets go by bits that all lines mix.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"

namespace penstock {

/// Trivially copyable; `sets` is 0 in a cache that has no sets.
struct set_map {
  u32 multiplier = 1;        ///< m, odd
  u32 upper_multiplier = 0;  ///< of a line number's bits beyond the lower
  u32 lower_mask = 0;        ///< of the lower bits: all of L, at most 32
  u32 sets = 0;
  u32 upper_bits = 0;  ///< the rest of L
  u32 top_shift = 0;   ///< brings the lower bits to the top of 32
  u32 reach_bits = 0;  ///< R

  static constexpr u32 most_reach_bits = 4;
  /// Of tag and distance: they must lie in the low half of an entry, and the version needs what is left (PROTOCOLS.md §2, "The
  /// entry"). Lines stay nearer home rather than that a version gets too short for reads without a pin on the CPU.
  static constexpr u32 most_place_bits = 27, place_bits_of_long_versions = 23;

  /// Of the odd numbers near 2^bits / 1.618, one whose quotients are small, and as small as can be for lines that are 2 to 1024
  /// apart.
  static constexpr u32 spreading_multiplier(u32 bits) {
    constexpr u64 candidates = 1024, most_candidates = 4096, small = 3;
    constexpr u32 most_stride_bits = 10, least_bits = 5;
    const u64 all = 1ull << bits, golden = (all * 0x9e3779b9ull >> 32) | 1;
    u64 best = golden, least = ~0ull;
    for (u64 k = 0; k < (least == ~0ull ? most_candidates : candidates) && golden + k < all; ++k) {
      const u64 m = golden + (k % 2 == 0 ? k : 0 - k - 1);  // below and above in turn, all of them odd
      if (m > all || largest_quotient(m, all) > small) continue;
      u64 worst = 0;
      for (u32 stride = 1; stride <= most_stride_bits && bits >= stride + least_bits; ++stride) {
        const u64 quotient = largest_quotient(m % (all >> stride), all >> stride);
        worst = quotient > worst ? quotient : worst;
      }
      if (worst >= least) continue;
      best = m;
      least = worst;
    }
    return static_cast<u32>(best);
  }

  /// The map of `lines` lines, 1 to 2^40, to `sets` sets.
  static constexpr set_map of(u64 lines, u32 sets) {
    const u32 bits = ceil_log2(lines), lower = bits < 32 ? bits : 32;
    set_map map;
    map.upper_bits = bits - lower;
    map.lower_mask = static_cast<u32>((1ull << lower) - 1);
    map.multiplier = spreading_multiplier(lower);
    map.upper_multiplier = map.upper_bits == 0 ? 0 : 0x85ebca6bu;
    map.top_shift = bits == 0 ? 0 : 32 - lower;
    map.sets = sets;
    const u32 tag = map.tag_bits(), most = tag <= place_bits_of_long_versions ? place_bits_of_long_versions : most_place_bits;
    const u32 spare = tag < most ? most - tag : 0;
    while (map.reach_bits < most_reach_bits && map.reach_bits < spare && sets >> (map.reach_bits + 1) != 0) ++map.reach_bits;
    return map;
  }

  constexpr u32 place_bits() const { return tag_bits() + reach_bits == 0 ? 1 : tag_bits() + reach_bits; }
  /// Bits that a tag needs (T), from the longest run that a set has.
  constexpr u32 tag_bits() const { return ceil_log2(ceil_div(u64{lower_mask} + 1, sets) << upper_bits); }

  PENSTOCK_FN u32 mix_lower(u32 lower, u32 upper) const { return (lower * multiplier + upper * upper_multiplier) & lower_mask; }
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

 private:
  /// Of the continued fraction of m / of, which is below 1.
  static constexpr u64 largest_quotient(u64 m, u64 of) {
    u64 largest = of / m;
    for (u64 rest = of % m, last = m; rest != 0;) {
      const u64 quotient = last / rest, next = last % rest;
      largest = quotient > largest ? quotient : largest;
      last = rest;
      rest = next;
    }
    return largest;
  }
};

}  // namespace penstock
