// Small bit arithmetic that both compilers turn into one or two instructions.
#pragma once

#include "penstock/core/config.hpp"

#include <bit>

namespace penstock {

PENSTOCK_FN inline u32 bit_count(u32 x) {
#if PENSTOCK_ON_DEVICE
  return static_cast<u32>(__popc(x));
#else
  return static_cast<u32>(std::popcount(x));
#endif
}

/// REQUIRES: x != 0.
PENSTOCK_FN inline u32 lowest_bit(u32 x) {
#if PENSTOCK_ON_DEVICE
  return static_cast<u32>(__ffs(static_cast<int>(x))) - 1;
#else
  return static_cast<u32>(std::countr_zero(x));
#endif
}

/// REQUIRES: x != 0.
PENSTOCK_FN inline u32 leading_zeros(u64 x) {
#if PENSTOCK_ON_DEVICE
  return static_cast<u32>(__clzll(static_cast<long long>(x)));
#else
  return static_cast<u32>(std::countl_zero(x));
#endif
}

/// The upper half of the product.
PENSTOCK_FN inline u64 high_product(u64 a, u64 b) {
#if PENSTOCK_ON_DEVICE
  return __umul64hi(a, b);
#else
  __extension__ using wide = unsigned __int128;
  return static_cast<u64>(wide{a} * b >> 64);
#endif
}

// By arithmetic: on a GPU the functions of <bit> are right in constant expressions only (nvcc 13.0 with GCC's library makes
// std::has_single_bit of a variable false, without a word).
constexpr bool is_power_of_two(u64 x) { return x != 0 && (x & (x - 1)) == 0; }

/// The least b with 2^b >= x. REQUIRES: x >= 1.
constexpr u32 ceil_log2(u64 x) { return static_cast<u32>(std::bit_width(x - 1)); }

/// x, which a GPU's compiler takes for a value that it knows nothing of: what follows from it is worked out where it is used,
/// and not kept in registers over what comes before.
PENSTOCK_FORCE_INLINE u64 worked_out_anew(u64 x) {
#if PENSTOCK_ON_DEVICE
  asm volatile("" : "+l"(x));
#endif
  return x;
}

constexpr u64 ceil_div(u64 a, u64 b) { return (a + b - 1) / b; }

constexpr u64 round_up(u64 a, u64 multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace penstock
