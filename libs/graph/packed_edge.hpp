// Edges as the builder holds and sorts them: both ends in 64 bits, `from` above `to`, and the weight if there are any.
#pragma once

#include "libs/graph/edge_source.hpp"

#include <algorithm>
#include <bit>

namespace penstock::graph {

/// How many bits the ids of so many vertices take; at least 1.
inline u32 id_bits(u64 vertices) { return static_cast<u32>(std::bit_width(std::max<u64>(vertices, 2) - 1)); }

/// Of a `from` that is too long for its half the upper bits are lost, but not its distance from the first vertex of a bucket
/// that is at most so wide.
inline u64 widest_bucket(u64 vertices) { return u64{1} << std::min(63u, 64 - id_bits(vertices)); }

inline u64 pack_ends(edge const& e, u32 to_bits) { return e.from << to_bits | e.to; }

struct packed_edge {
  u64 ends;

  static packed_edge of(edge const& e, u32 to_bits) { return {pack_ends(e, to_bits)}; }
  u64 key() const { return ends; }
  u32 weight() const { return 0; }
};

/// 12 bytes: a u64 would be padded to 16.
struct packed_weighted_edge {
  u32 low, high, bytes_of_weight;

  static packed_weighted_edge of(edge const& e, u32 to_bits) {
    u64 const ends = pack_ends(e, to_bits);
    return {static_cast<u32>(ends), static_cast<u32>(ends >> 32), e.weight};
  }
  u64 key() const { return u64{high} << 32 | low; }
  u32 weight() const { return bytes_of_weight; }
};

}  // namespace penstock::graph
