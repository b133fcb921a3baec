// Ends of edges that come up as often as a Chung-Lu graph with the degrees of a social network wants.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock::graph {

/// The vertex of rank i of n has an expected degree in proportion to (i + i0)^(-1 / (b - 1)): a power law with exponent b that
/// is cut off at a largest degree (Chung, Lu, "Connected components in random graphs with given expected degree sequences",
/// 2002). For b = 7/3 the degrees up to rank i sum up to the fourth root of i + i0, less that of i0, so ranks are drawn by a
/// fourth power. i0 is where the largest degree is 94.7 times the mean, as in SNAP's com-Friendster: 65,608,366 vertices and
/// 1,806,067,135 edges, so a mean of 55.06, and a largest degree of 5,214. The lowest expected degree is then 0.29 of the mean,
/// the median 0.49. Integers, so that every machine draws the same.
class social_ranks {
 public:
  /// The rank below 2^scale that falls to a uniform draw. REQUIRES: scale <= 40.
  static constexpr u64 of(u64 draw, u32 scale) {
    u64 const root = first + high_half(draw, last - first);
    return (fourth_power(root) - fourth_power(first)) >> (fraction - scale);
  }

 private:
  __extension__ typedef unsigned __int128 u128;  // NOLINT(modernize-use-using): nvcc wants it so

  static constexpr u32 fraction = 63;  ///< bits behind the binary point
  static constexpr double one = 9223372036854775808.0;
  static constexpr u64 first = static_cast<u64>(0.14564397746915636 * one);  ///< the fourth root of i0 / n
  static constexpr u64 last = static_cast<u64>(1.00011247004396 * one);      ///< of 1 + i0 / n, rounded down

  static constexpr u64 high_half(u64 a, u64 b) { return static_cast<u64>(u128{a} * b >> 64); }
  static constexpr u64 square(u64 a) { return static_cast<u64>(u128{a} * a >> fraction); }
  static constexpr u64 fourth_power(u64 a) { return square(square(a)); }
};

static_assert(social_ranks::of(0, 40) == 0);
static_assert(social_ranks::of(~u64{0}, 40) == (u64{1} << 40) - 1);

}  // namespace penstock::graph
