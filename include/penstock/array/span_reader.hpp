// Runs of bytes, read by a whole group in pieces of 16: rows, lists, whole lines.
//
// One look at the directory serves many lines: lane k finds line k of the run, and hands its frame to the lanes that read
// there. The argument of the validated read, across lanes (PROTOCOLS.md §2): all lanes have read and fenced before the lane
// that found a line looks at its entry again; only then is what was read used.
#pragma once

#include "penstock/array/line_reader.hpp"

namespace penstock {

/// Loads of 16 bytes that each lane keeps in flight.
inline constexpr u32 pieces_in_flight = 8;

/// The same where a group reads several lines at once: fewer, for there is more to keep beside them.
inline constexpr u32 window_pieces_in_flight = 4;

/// The order `data`: 0, which depends on every byte of what a lane has read.
template <read_order Order, u32 Pieces>
PENSTOCK_FN u64 tie_recheck_to_all(piece16 const (&read)[Pieces], u64 zero) {
  u64 all = 0;
  PENSTOCK_UNROLL
  for (u32 k = 0; k < Pieces; ++k) all |= tie_recheck_to<Order>(read[k], zero);
  return all;
}

/// The pieces of a run that lies on one line, as many as make whole batches: every lane finds the line and validates what it
/// read itself, so the lanes need nothing of each other. Returns how many were used.
template <read_order Order, thread_group G, class Use>
PENSTOCK_FORCE_INLINE u32 read_on_one_line(G const& g, line_reader const& reader, u64 begin, u32 pieces, Use const& use) {
  const u32 width = size(g);
  const u32 lane = index_in(g);
  const u32 batch = pieces_in_flight * width;
  if (pieces < batch) return 0;
  hit_line at{};
  const bool there = reader.template find<Order>(begin, at);
  if (any(g.ballot(!there))) return 0;
  auto const* const from = reinterpret_cast<piece16 const*>(at.frame + reader.within(begin)) + lane;
  u32 used = 0;
  do {
    piece16 read[pieces_in_flight];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) read[k] = load_streamed(from + used + k * width);
    order_before_recheck<Order>();
    if (any(g.ballot(!reader.unchanged(at, tie_recheck_to_all<Order>(read, reader.zero))))) break;
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) use(used + lane + k * width, read[k]);
    used += batch;
  } while (pieces - used >= batch);
  return used;
}

/// As many lines of a run as a group has lanes, each found by one lane, as the group walks them: a step is one load of every
/// lane, of bytes that lie on one line.
template <read_order Order, thread_group G>
struct span_window {
  G const& g;
  line_reader const& reader;
  u64 run;            ///< address of the first step, a multiple of a step's bytes
  u32 steps;          ///< in the window
  u32 width;          ///< of the group
  u32 lane;           ///< index in the group
  hit_line seen{};    ///< by this lane: line `lane` of the window
  u32 frame = 0;      ///< its number
  bool sound = true;  ///< the line may be read without a pin, or is none of the window

  /// Looks this lane's line up; asks for all that are missing at once.
  PENSTOCK_FN void find() {
    const u64 mine = (run >> reader.line_shift) + lane;
    const bool wanted = mine <= (run + 16ull * width * steps - 1) >> reader.line_shift;
    const bool there = wanted && reader.template find<Order>(mine << reader.line_shift, seen);
    if (there) frame = static_cast<u32>((seen.frame - reader.frames_base) >> reader.line_shift);
    sound = there || !wanted;
    if (any(g.ballot(!sound))) prefetch_line(g, *reader.cache, reader.dataset, !sound, line_id{mine}, fill_purpose::guess);
  }

  /// Reads the steps from `s` on, as many as fit in flight; past the window's end the last one again. A line that is in no
  /// frame is read from frame 0, for nothing. False: nothing was learned.
  PENSTOCK_FORCE_INLINE bool read(u32 s, piece16 (&read)[window_pieces_in_flight]) const {
    const u32 first_rank = lowest(g.members());
    const u32 from = reader.within(run), step = 16 * width;
    PENSTOCK_UNROLL
    for (u32 k = 0; k < window_pieces_in_flight; ++k) {
      const u32 at = from + step * (s + k < steps ? s + k : steps - 1);
      const u32 number = static_cast<u32>(g.shfl(frame, first_rank + (at >> reader.line_shift)));
      const u64 base = reader.frames_base + static_cast<u64>(number) * reader.line_bytes;
      read[k] = load_piece(reinterpret_cast<piece16 const*>(base + (at & reader.line_mask)) + lane);
    }
    order_before_recheck<Order>();
    // The lane that looks again depends on what all have read: by the fences before this meeting, or by the vote.
    g.sync();
    u64 tie = 0;
    if constexpr (Order == read_order::data) tie = any(g.ballot(tie_recheck_to_all<Order>(read, reader.zero) != 0)) ? 1 : 0;
    const u32 last = s + window_pieces_in_flight < steps ? s + window_pieces_in_flight : steps;
    const bool mine = lane >= (from + step * s) >> reader.line_shift && lane <= (from + step * last - 1) >> reader.line_shift;
    return !any(g.ballot(mine && !(sound && reader.unchanged(seen, tie))));
  }
};

/// The pieces of a run, each found and read by its lane alone: for groups with holes, of an odd size, or wider than a line.
template <read_order Order, thread_group G, class UseEdge>
PENSTOCK_FN void read_alone(G const& g, line_reader const& reader, u64 begin, u64 pieces, UseEdge const& use_edge) {
  for (u64 k = index_in(g); k < pieces; k += size(g)) use_edge(k, reader.template read<piece16, Order>(begin + 16 * k));
}

/// Whether all steps of a group lie on one line each.
template <thread_group G>
PENSTOCK_FN bool walks_windows(G const& g, line_reader const& reader) {
  const u32 width = size(g);
  if ((width & (width - 1)) != 0 || 16 * width > reader.line_bytes) return false;
  return !any(g.ballot(g.rank() != lowest(g.members()) + index_in(g)));
}

/// Calls use(k, piece k) for the first pieces of a run of `pieces` pieces of 16 bytes from `begin` on, an address in the
/// cache's line space: those on the first lines, as many as the group has lanes. What is read together with the first or the
/// last of the run goes to use_edge(k, piece k) instead where those are not `whole`. Returns how many they were. Collective.
/// REQUIRES: begin a multiple of 16; walks_windows.
template <read_order Order, thread_group G, class Use, class UseEdge>
PENSTOCK_FN u32 read_window(G const& g, line_reader const& reader, u64 begin, u64 pieces, bool whole, Use const& use,
                            UseEdge const& use_edge) {
  const u32 width = size(g);
  const u32 lane = index_in(g);
  const u64 run = begin & ~(16ull * width - 1);
  const u32 skew = static_cast<u32>(begin - run) / 16;  // pieces of the first step that are not wanted
  const u64 reach = (((run >> reader.line_shift) + width) << reader.line_shift) - begin;
  const u32 count = static_cast<u32>(16 * pieces < reach ? pieces : reach / 16);
  span_window<Order, G> window{g, reader, run, (skew + count + width - 1) / width, width, lane};
  window.find();
  for (u32 s = 0; s < window.steps; s += window_pieces_in_flight) {
    piece16 read[window_pieces_in_flight];
    const u32 mine = s * width + lane - skew;  // number of this lane's first piece; wraps before the run
    if (window.read(s, read)) {
      if (whole && s * width >= skew && (s + window_pieces_in_flight) * width - skew <= count) {
        PENSTOCK_UNROLL
        for (u32 k = 0; k < window_pieces_in_flight; ++k) use(mine + k * width, read[k]);
      } else {
        PENSTOCK_UNROLL
        for (u32 k = 0; k < window_pieces_in_flight; ++k) {
          if (mine + k * width < count) use_edge(mine + k * width, read[k]);
        }
      }
      continue;
    }
    PENSTOCK_UNROLL_BY(1)
    for (u32 k = mine; k != mine + window_pieces_in_flight * width; k += width) {
      const bool asked = k < count;
      const piece16 late = reader.template read_slowly<piece16>(g, asked, begin + (asked ? 16ull * k : 0));
      if (asked) use_edge(k, late);
    }
  }
  return count;
}

/// The same for memory that the kernel reaches.
template <thread_group G, class Use>
PENSTOCK_FN void read_resident_pieces(G const& g, u64 begin, u64 end, Use const& use) {
  auto const* const pieces = reinterpret_cast<piece16 const*>(begin);
  const u64 count = (end - begin) / 16;
  PENSTOCK_UNROLL_BY(8)
  for (u64 k = index_in(g); k < count; k += size(g)) use(k, pieces[k]);
}

}  // namespace penstock
