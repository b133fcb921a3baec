// Fills of datasets that lie in memory which kernels reach (pinned host memory, a mapped file, a peer's HBM): the group that
// misses copies the lines itself and publishes them. No command leaves the executor, and no thread of a host is needed.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/core/frame_copies.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// What a dataset has of its last 16 bytes: none of those behind it are looked at.
PENSTOCK_FN inline piece16 load_end(u64 memory, u32 bytes) {
  auto const* const from = reinterpret_cast<u8 const*>(memory);
  piece16 end{0, 0};
  for (u32 k = 0; k < bytes; ++k) (k < 8 ? end.low : end.high) |= static_cast<u64>(from[k]) << (k % 8 * 8);
  return end;
}

/// Copies the lines that the lanes of a group have claimed, all lanes together, one line after the other. Collective.
///
/// A thread that reads a frame's new bytes while it still has the old line must find the claim when it looks at the entry
/// again: the claim happens before the group's first sync, and each lane's fence hands that on (core/atomic.hpp). All bytes
/// happen before the second sync, and so before the fence and the addition that publish the line.
template <thread_group G, class Fill>
PENSTOCK_FN void copy_fills(G const& g, bool claimed, Fill const& fill) {
  g.sync();
  order_claim_before_bytes();
  // Few threads copy through L1, which may have what lay there before the last kernel of another GPU, or the host, stored.
  if (size(g) < whole_requests_width) order_after_seeing();
  for (auto todo = g.ballot(claimed); any(todo);) {
    const u32 lane = lowest(todo);
    const u64 frame = g.shfl(fill.command.address, lane), memory = g.shfl(fill.memory, lane);
    const u32 bytes = static_cast<u32>(g.shfl(fill.command.bytes, lane));
    const u32 whole = bytes & ~15u;
    copy_bounce_to_frame(frame, memory, whole, index_in(g), size(g));
    if (whole != bytes && is_leader(g)) {
      store_piece_after_fence(reinterpret_cast<piece16*>(frame + whole), load_end(memory + whole, bytes - whole));
    }
    todo = without(todo, g.ballot(g.rank() == lane));
  }
  g.sync();
  if (!claimed) return;
  order_before_telling();
  line_sink::finish(fill.target, {});
}

}  // namespace penstock
