// Fills of a program's own: lines that its code makes where they are missed (decoded, computed, copied from elsewhere), for a
// cache over a dataset of `own_fills` (runtime/line_cache.hpp). No command leaves the executor.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// Where the bytes of one line go, in pieces of 16 bytes.
struct frame_writer {
  u64 frame = 0;  ///< address
  u32 bytes = 0;  ///< of the dataset that the line has; what the last piece has beyond them is read by no one

  PENSTOCK_FN u32 pieces() const { return (bytes + 15) / 16; }
  /// REQUIRES: k < pieces().
  PENSTOCK_FN void store(u32 k, piece16 piece) const { store_piece_after_fence(reinterpret_cast<piece16*>(frame) + k, piece); }
};

/// A view of a cache whose lines come from `fills`: a trivially copyable type that is called as
///
///     template <thread_group G> PENSTOCK_FN status operator()(G const& g, byte_offset first, frame_writer const& to) const;
///
/// by all threads of the group that misses, for the line that begins at byte `first` of its dataset; between them they store
/// each piece once. A status that is not ok, in any thread, fails the line: its readers get that status.
template <class Fills, replacement_policy Policy = clock_policy>
struct filled_cache_view : basic_line_cache_view<Policy> {
  Fills fills;
};

template <class Cache>
concept has_fills = requires(Cache const& cache) { cache.fills; };

/// Fills the lines that the lanes of a group have claimed, all lanes together, one line after the other. Collective. The order
/// is that of copy_fills.
template <thread_group G, has_fills Cache>
PENSTOCK_FN void make_fills(G const& g, Cache const& cache, dataset_view const& data, bool claimed,
                            typename Cache::fill const& fill) {
  g.sync();
  order_claim_before_bytes();
  status outcome{};
  for (auto todo = g.ballot(claimed); any(todo);) {
    const u32 lane = lowest(todo);
    const u64 frame = g.shfl(fill.command.address, lane), first = g.shfl(fill.memory - data.memory, lane);
    const u32 bytes = static_cast<u32>(g.shfl(fill.command.bytes, lane));
    const status mine = cache.fills(g, byte_offset{first}, frame_writer{frame, bytes});
    const auto failures = g.ballot(!mine.ok());
    const u64 failure = any(failures) ? g.shfl(pack(mine), lowest(failures)) : 0;
    if (g.rank() == lane) outcome = unpack_status(static_cast<u32>(failure));
    todo = without(todo, g.ballot(g.rank() == lane));
  }
  g.sync();
  if (!claimed) return;
  order_before_telling();
  line_sink::finish(fill.target, outcome);
}

}  // namespace penstock
