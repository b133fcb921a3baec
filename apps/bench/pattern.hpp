// Which element an item of a benchmark reads. Every pattern visits each element once in a turn, so that a kernel that checks
// what it reads has checked the whole array.
#pragma once

#include "penstock/core/config.hpp"

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

/// REQUIRES: elements, line_elements and step powers of two.
struct pattern {
  u64 elements = 0;
  u64 line_elements = 0;
  u64 step = 1;
  line_order lines = line_order::random;

  /// The line (or the run of lines) that item k of `count` reads, `count` a power of two.
  PENSTOCK_FN u64 line(u64 k, u64 count) const {
    const u64 by = step < count ? step : count;
    switch (lines) {
      case line_order::linear: return k;
      case line_order::strided: return k % (count / by) * by + k / (count / by);
      case line_order::coarsened: return k % by * (count / by) + k / by;
      case line_order::random: break;
    }
    return permute(k, count);
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
    if constexpr (Kind == pattern_kind::strided) return k % (elements / step) * step + k / (elements / step);
    if constexpr (Kind == pattern_kind::lines) {
      return permute(k / line_elements, elements / line_elements) * line_elements + k % line_elements;
    }
    if constexpr (Kind == pattern_kind::coarsened) return k % step * (elements / step) + k / step;
    return 0;
  }
};

}  // namespace penstock::bench
