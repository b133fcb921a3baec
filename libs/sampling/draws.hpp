// Random numbers by counter: what is drawn depends on the key and the place of the draw alone, not on who draws, so both
// executors and any number of threads draw the same.
#pragma once

#include "penstock/core/bits.hpp"

#include <bit>
#include <cmath>

namespace penstock::sampling {

/// Where a draw stands in the sample of one call.
struct draw_place {
  u32 stage = 0;  ///< hop and edge type
  u32 node = 0;   ///< local number of the node whose neighbours are drawn
};

/// The pair of numbers with this index. Philox4x32-10 (Salmon et al., SC 2011).
struct drawn_pair {
  u64 first = 0, second = 0;
};
PENSTOCK_FN inline drawn_pair draw_pair(u64 key, draw_place const& place, u64 index) {
  u32 c0 = static_cast<u32>(index), c1 = static_cast<u32>(index >> 32), c2 = place.node, c3 = place.stage;
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  PENSTOCK_UNROLL
  for (u32 round = 0; round < 10; ++round) {
    const u64 a = u64{0xD2511F53u} * c0, b = u64{0xCD9E8D57u} * c2;
    c0 = static_cast<u32>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<u32>(b);
    c2 = static_cast<u32>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<u32>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {u64{c1} << 32 | c0, u64{c3} << 32 | c2};
}

PENSTOCK_FN inline u64 draw(u64 key, draw_place const& place, u64 index) {
  const drawn_pair pair = draw_pair(key, place, index / 2);
  return index % 2 == 0 ? pair.first : pair.second;
}

/// 0 to below - 1, each with the same probability up to below / 2^64.
PENSTOCK_FN inline u64 below(u64 drawn, u64 limit) { return high_product(drawn, limit); }

/// -ln of a uniform number in (0, 1), by operations that round alike everywhere: the executors agree to the last bit.
PENSTOCK_FN inline double exponential(u64 drawn) {
  const u64 bits = drawn | 1;
  int power = -static_cast<int>(leading_zeros(bits)) - 1;
  const u64 fraction = power == -64 ? 0 : bits << -power;
  double m = std::bit_cast<double>(u64{0x3ff} << 52 | fraction >> 12);  // the number is m * 2^power
  if (m > 1.4142135623730951) {                                         // near 1 its logarithm is small: no difference
    m /= 2;
    ++power;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 1.0 / 25;  // of the series of atanh t
  for (int k = 23; k >= 1; k -= 2) sum = std::fma(sum, square, 1.0 / k);
  const double log_m = 2 * t * sum;
  return std::fma(static_cast<double>(-power), 0.69314718055994530942, -log_m);
}

/// A positive number as a fraction from 1 up to 2, and a power of 2.
struct split_number {
  double fraction;
  int power;
};
PENSTOCK_FN inline split_number split(double x) {
  int power = 0;
  u64 bits = std::bit_cast<u64>(x);
  if (bits >> 52 == 0) {  // subnormal
    bits = std::bit_cast<u64>(x * 0x1p64);
    power = -64;
  }
  return {std::bit_cast<double>((bits & 0xfffffffffffffull) | u64{1023} << 52), power + static_cast<int>(bits >> 52) - 1023};
}

/// Words in the order of the quotients of positive numbers, also of those that are no double.
PENSTOCK_FN inline u64 ordered_quotient(double a, double b) {
  constexpr int least_power = -2200;
  const split_number over = split(a), under = split(b), quotient = split(over.fraction / under.fraction);
  const auto power = static_cast<u64>(over.power - under.power + quotient.power - least_power);
  return power << 51 | (std::bit_cast<u64>(quotient.fraction) & 0xfffffffffffffull) >> 1;
}

}  // namespace penstock::sampling
