// Intrinsics of CUDA's for a host compiler: integers, bits, and fast arithmetic, which is the exact one here.
#pragma once

#include "penstock/kernels/host_calls.hpp"

#include <cmath>

// NOLINTBEGIN(bugprone-reserved-identifier): they are the names that CUDA has.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }

inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= (x >> bit & 1) << (63 - bit);
  return reversed;
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }

/// Byte k of the result is the one that digit k of `selector` names among the eight of x and y; with 8 added its sign.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long all = static_cast<unsigned long long>(y) << 32 | x;
  unsigned chosen = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned digit = selector >> 4 * k;
    const auto byte = static_cast<unsigned char>(all >> 8 * (digit & 7u));
    chosen |= ((digit & 8u) != 0 ? ((byte & 0x80u) != 0 ? 0xffu : 0u) : byte) << 8 * k;
  }
  return chosen;
}

inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32); }
inline long long __mul64hi(long long x, long long y) { return static_cast<long long>(static_cast<__int128>(x) * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}

/// Bits of high:low from bit 32 - shift, or from bit `shift`, on.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31u));
}

[[noreturn]] inline void __trap() { __builtin_trap(); }
inline float __saturatef(float x) { return x >= 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
// NOLINTEND(bugprone-reserved-identifier)
