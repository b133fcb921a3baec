// Which element an item of a benchmark reads. Every pattern visits each element once in a turn, so that a kernel that checks
// what it reads has checked the whole array.
#pragma once

#include "penstock/core/bits.hpp"

namespace penstock::bench {

/// What element i holds: a value that no other element has, cheap enough not to be what is measured.
inline constexpr u64 value_mask = 0x5bd1e9955bd1e995ull;
PENSTOCK_FN inline u64 value_at(u64 i) { return i ^ value_mask; }

/// A bijection on [0, count), count a power of two up to 2^32: odd multiplications and a shift.
PENSTOCK_FN inline u64 permute(u64 k, u64 count) {
  const u32 mask = static_cast<u32>(count - 1);
  u32 x = static_cast<u32>(k) * 0x9e3779b9u & mask;
  x ^= x >> 11;
  return x * 0xde82ef95u & mask;
}

/// The lowest `bits` bits of k, turned left by `by` of them: k / (n / s) + k % (n / s) * s for n = 2^bits and s = 2^by.
PENSTOCK_FN inline u64 turn(u64 k, u32 bits, u32 by) { return (k << by | k >> (bits - by)) & ((1ull << bits) - 1); }

/// Of a power of two.
PENSTOCK_FN inline u32 log2_of(u64 x) {
  const u32 low = static_cast<u32>(x);
  return low != 0 ? lowest_bit(low) : 32 + lowest_bit(static_cast<u32>(x >> 32));
}

enum class pattern_kind : u32 {
  linear,     ///< thread k reads element k
  random,     ///< any permutation of elements
  hot,        ///< random elements of 16 lines, far apart: the one pattern that leaves elements out
  strided,    ///< neighbouring threads read elements `step` apart
  lines,      ///< any permutation of lines, linear within each
  coarsened,  ///< far-away coarsening: a thread reads `step` elements, size / step apart (BaM dissertation, Listing 6.2)
};

/// In which order groups that read whole lines take them (the dissertation's `assignment`, Listing 6.2).
enum class line_order : u32 {
  random,     ///< any permutation
  linear,     ///< one after another
  strided,    ///< neighbouring groups `step` lines apart
  coarsened,  ///< neighbouring groups a `step`-th of all lines apart
};

/// See pattern::sequence.
struct line_sequence {
  u32 mask = 0;
  u32 left = 0, right = 0;  ///< a turn to the left by `left` bits of `left + right`
  bool random = false;

  PENSTOCK_FN u64 at(u64 k) const {
    const u32 low = static_cast<u32>(k);
    return random ? permute(low, mask + 1) : (low << left | low >> right) & mask;
  }
};

/// REQUIRES: elements, line_elements and step powers of two.
struct pattern {
  u64 elements = 0;
  u64 line_elements = 0;
  u64 step = 1;
  line_order lines = line_order::random;

  /// In which order `count` lines (or runs of lines) are read, a power of two up to 2^31. On the host: what a kernel would
  /// work out before its loop it would keep in registers that its reads need.
  line_sequence sequence(u64 count) const {
    const u32 bits = log2_of(count), by = step < count ? log2_of(step) : bits;
    const u32 left = lines == line_order::strided ? by : lines == line_order::coarsened ? bits - by : 0;
    return {static_cast<u32>(count - 1), left, bits - left, lines == line_order::random};
  }

  template <pattern_kind Kind>
  PENSTOCK_FN u64 at(u64 k) const {
    if constexpr (Kind == pattern_kind::linear) return k;
    if constexpr (Kind == pattern_kind::random) return permute(k, elements);
    if constexpr (Kind == pattern_kind::hot) {
      const u64 draw = permute(k, elements);
      // An odd number of lines apart, so that their entries don't share a slice of L2.
      const u64 apart = elements / line_elements / 16 - 1;
      return (draw & 15) * apart * line_elements + (draw >> 4 & (line_elements - 1));
    }
    if constexpr (Kind == pattern_kind::strided) return turn(k, log2_of(elements), log2_of(step));
    if constexpr (Kind == pattern_kind::lines) {
      return permute(k / line_elements, elements / line_elements) * line_elements + k % line_elements;
    }
    if constexpr (Kind == pattern_kind::coarsened) return turn(k, log2_of(elements), log2_of(elements) - log2_of(step));
    return 0;
  }
};

}  // namespace penstock::bench
