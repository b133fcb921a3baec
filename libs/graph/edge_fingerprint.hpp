// Whether each edge is listed at both of its ends, told by a sum: what an edge adds to it, the same edge the other way round
// takes away. A sum of 0 is no proof, but 1 of 2^64 others would be one by chance.
#pragma once

#include "libs/graph/edge_source.hpp"

#include <algorithm>

namespace penstock::graph {

inline u64 scramble(u64 x) {
  x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
  return x ^ x >> 29;
}

/// Modulo 2^64; 0 for a loop, which is its own other way round.
inline u64 signed_fingerprint(edge const& e) {
  auto const [low, high] = std::minmax(e.from, e.to);
  u64 const print = scramble(scramble(scramble(low + 1) + high) + e.weight);
  if (low == high) return 0;
  return e.from < e.to ? print : u64{0} - print;
}

}  // namespace penstock::graph
