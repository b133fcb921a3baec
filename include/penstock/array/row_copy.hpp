// Rows of any width at any address, copied by a group in loads of 16 bytes.
//
// A row starts where its number puts it, so neither source nor target need be aligned. What the memory is asked for is aligned
// all the same: whole batches of 16 bytes for each lane, which begin at a multiple of their length; over a link a warp's
// request is then as few packets as the bytes allow. (The zero-copy dissertation aligns by turning the indices of a row's
// elements round, Listing 3.2; that needs rows and elements of 4 bytes.) What has come is shifted across lanes by what source
// and target differ in, and stored in aligned pieces.
#pragma once

#include "penstock/core/memory_access.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/thread_group.hpp"

#include <cstring>
#include <type_traits>

namespace penstock {

/// Loads that each lane keeps in flight.
inline constexpr u32 row_pieces_in_flight = 4;

/// The 16 bytes that begin `offset` bytes into two pieces that follow each other. REQUIRES: offset from 0 to 15.
PENSTOCK_FN inline piece16 bytes_across(piece16 first, piece16 second, u32 offset) {
  const bool far = offset >= 8;
  const u64 a = far ? first.high : first.low, b = far ? second.low : first.high, c = far ? second.high : second.low;
  const u32 bits = 8 * (offset & 7);
  // Two steps: a shift by 64 is none.
  return {a >> bits | (b << 1) << (63 - bits), b >> bits | (c << 1) << (63 - bits)};
}

/// Stores those bytes of a piece at `to` that lie in [begin, end), in pieces of `Unit` bytes.
template <class Unit>
PENSTOCK_FN void store_within(u64 to, piece16 piece, u64 begin, u64 end) {
  PENSTOCK_UNROLL
  for (u32 at = 0; at < 16; at += sizeof(Unit)) {
    const u64 word = at < 8 ? piece.low : piece.high;
    if (to + at >= begin && to + at < end) *reinterpret_cast<Unit*>(to + at) = static_cast<Unit>(word >> 8 * (at & 7));
  }
}

/// Copies a row. Collective.
/// Cost:   one load for 16 bytes, four shuffles of 8 where source and target differ in alignment.
/// REQUIRES: a group of a power of two lanes without holes; source, target and bytes multiples of sizeof(Unit). The aligned 16
///           bytes that the row begins and ends in can be loaded; a lone thread loads the row only.
template <class Unit, thread_group G>
PENSTOCK_FN void copy_row(G const& g, u64 from, u64 to, u64 bytes) {
  if constexpr (std::is_same_v<G, lone_thread>) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void const*>(from), bytes);
    return;
  }
  const u32 width = size(g), lane = index_in(g);
  const u32 before = lowest(g.members()) + (lane + width - 1) % width;  // rank of the lane before, or of the last
  const u64 batch = 16ull * width, end = from + bytes, to_end = to + bytes;
  const u32 shift = static_cast<u32>(to - from) & 15;
  piece16 carry{};  // lane 0: the last lane's of the batch before
  // What the target's last piece needs of the row may lie up to 15 bytes before the piece that it is stored with.
  for (u64 base = from & ~(batch - 1); base < end + 15; base += row_pieces_in_flight * batch) {
    piece16 here[row_pieces_in_flight], previous[row_pieces_in_flight];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < row_pieces_in_flight; ++k) {
      const u64 at = base + k * batch + 16ull * lane;
      here[k] = at + 16 > from && at < end ? *reinterpret_cast<piece16 const*>(at) : piece16{};
    }
    PENSTOCK_UNROLL
    for (u32 k = 0; k < row_pieces_in_flight; ++k) {
      const piece16 turned{g.shfl(here[k].low, before), g.shfl(here[k].high, before)};
      previous[k] = lane == 0 ? carry : turned;
      carry = turned;
    }
    PENSTOCK_UNROLL
    for (u32 k = 0; k < row_pieces_in_flight; ++k) {
      const u64 piece = to + (base + k * batch + 16ull * lane - from) - shift;
      const piece16 shifted = shift == 0 ? here[k] : bytes_across(previous[k], here[k], 16 - shift);
      if (piece >= to && piece + 16 <= to_end) {
        *reinterpret_cast<piece16*>(piece) = shifted;
      } else if (piece + 16 > to && piece < to_end) {
        store_within<Unit>(piece, shifted, to, to_end);
      }
    }
  }
}

/// Rows that a group copies at once, where each of its lanes has one load of each.
inline constexpr u32 short_rows_at_once = 4;

/// Lanes of a group, side by side, that copy a row together.
struct row_lanes {
  u32 lane;   ///< which of them this thread is
  u32 width;  ///< how many there are
  u32 first;  ///< rank of the first

  template <thread_group G>
  PENSTOCK_FN static row_lanes all(G const& g) {
    return {index_in(g), size(g), lowest(g.members())};
  }
  /// REQUIRES: a power of two that divides the size of the group, whose mask has no holes.
  template <thread_group G>
  PENSTOCK_FN static row_lanes parts(G const& g, u32 width) {
    const u32 index = index_in(g), lane = index & (width - 1);
    return {lane, width, lowest(g.members()) + index - lane};
  }
};

/// Copies rows from[r] to to[r], those with a bit in `wanted`, each by `lanes` of the group. All loads are on their way before
/// the first is used; a row that is the one before it is not loaded again. Collective. REQUIRES: as copy_row, and rows short
/// enough: 16 bytes a lane hold the row, or the row and 30 bytes more where it is not
///           aligned to 16 as its target is.
template <class Unit, thread_group G>
PENSTOCK_FN void copy_short_rows(G const& g, row_lanes const& lanes, u64 const (&from)[short_rows_at_once],
                                 u64 const (&to)[short_rows_at_once], u64 bytes, u32 wanted) {
  if constexpr (std::is_same_v<G, lone_thread>) {
    for (u32 r = 0; r < short_rows_at_once; ++r) {
      if ((wanted >> r & 1) != 0) std::memcpy(reinterpret_cast<void*>(to[r]), reinterpret_cast<void const*>(from[r]), bytes);
    }
    return;
  }
  const u32 lane = lanes.lane, before = lanes.first + (lane + lanes.width - 1) % lanes.width;
  piece16 here[short_rows_at_once];
  PENSTOCK_UNROLL
  for (u32 r = 0; r < short_rows_at_once; ++r) {
    const u64 at = (from[r] & ~15ull) + 16ull * lane;
    const bool again = r != 0 && from[r] == from[r != 0 ? r - 1 : 0] && (wanted >> (r - 1) & 1) != 0;
    const bool loads = (wanted >> r & 1) != 0 && at < from[r] + bytes;
    if (again) {
      here[r] = here[r != 0 ? r - 1 : 0];
    } else {
      here[r] = loads ? *reinterpret_cast<piece16 const*>(at) : piece16{};
    }
  }
  PENSTOCK_UNROLL
  for (u32 r = 0; r < short_rows_at_once; ++r) {
    const u32 shift = static_cast<u32>(to[r] - from[r]) & 15;
    const piece16 previous{g.shfl(here[r].low, before), g.shfl(here[r].high, before)};
    if ((wanted >> r & 1) == 0) continue;
    // Lane 0's previous piece would be what lies before the row, of which nothing is stored.
    const piece16 shifted = shift == 0 ? here[r] : bytes_across(previous, here[r], 16 - shift);
    const u64 piece = to[r] - (from[r] & 15) + 16ull * lane - shift;
    if (piece >= to[r] && piece + 16 <= to[r] + bytes) {
      *reinterpret_cast<piece16*>(piece) = shifted;
    } else if (piece + 16 > to[r] && piece < to[r] + bytes) {
      store_within<Unit>(piece, shifted, to[r], to[r] + bytes);
    }
  }
}

}  // namespace penstock
