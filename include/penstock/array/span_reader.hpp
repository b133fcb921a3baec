// Runs of bytes, read by a whole group in pieces of 16: rows, lists, whole lines.
//
// One look at the directory serves many lines: lane k finds line k of the run, and hands its frame to whoever reads there. The
// argument of the validated read, across lanes (PROTOCOLS.md §2): all lanes have read and fenced before the lane that found a
// line looks at its entry again; only then is what was read used.
#pragma once

#include "penstock/array/line_reader.hpp"

namespace penstock {

/// Loads of 16 bytes that each lane keeps in flight.
inline constexpr u32 pieces_in_flight = 8;

/// The order `data`: 0, which depends on every byte of what a lane has read.
template <read_order Order>
PENSTOCK_FN u64 tie_recheck_to_all(piece16 const (&read)[pieces_in_flight], u64 zero) {
  u64 all = 0;
  PENSTOCK_UNROLL
  for (u32 k = 0; k < pieces_in_flight; ++k) all |= tie_recheck_to<Order>(read[k], zero);
  return all;
}

/// Some of a run of lines, as a group walks it: `step` bytes are one load of every lane, and lie on one line.
template <read_order Order, thread_group G>
struct span_window {
  G const& g;
  line_reader const& reader;
  u64 run;          ///< address of the first step
  u32 within;       ///< of the run in its first line
  u32 steps;        ///< in the run
  u32 step;         ///< bytes
  u32 lane;         ///< index in the group
  u32 first_rank;   ///< of the group
  hit_line seen{};  ///< by this lane: line `lane` of the run
  u32 frame = 0;    ///< its frame's number and one; 0: not to be read without a pin

  /// Looks this lane's line up; asks for all that are missing at once.
  PENSTOCK_FN void find(u64 first_line, u64 last_line) {
    const u64 mine = first_line + lane;
    const bool wanted = mine <= last_line;
    const bool there = wanted && reader.template find<Order>(mine << reader.line_shift, seen);
    if (there) frame = static_cast<u32>((seen.frame - reader.frames_base) >> reader.line_shift) + 1;
    const bool absent = wanted && !there;
    if (any(g.ballot(absent))) prefetch_line(g, *reader.cache, reader.dataset, absent, line_id{mine}, fill_purpose::guess);
  }

  /// Reads the steps from `s` on, as many as fit in flight; past the run's end the last one again. False: nothing was learned.
  PENSTOCK_FN bool read(u32 s, piece16 (&read)[pieces_in_flight]) const {
    const u32 from = within + s * step;
    const u32 final = within + (steps - 1) * step;
    const u32 most = from + (pieces_in_flight - 1) * step;
    const u32 first = from >> reader.line_shift;
    const u32 last = (most < final ? most : final) >> reader.line_shift;
    const bool mine = lane >= first && lane <= last;
    if (any(g.ballot(mine && frame == 0))) return false;
    if (first == last && most <= final) {
      auto const* const pieces = reinterpret_cast<piece16 const*>(address_of(first) + (from & reader.line_mask)) + lane;
      PENSTOCK_UNROLL
      for (u32 k = 0; k < pieces_in_flight; ++k) read[k] = load_piece(pieces + k * (step / 16));
    } else {
      PENSTOCK_UNROLL
      for (u32 k = 0; k < pieces_in_flight; ++k) {
        const u32 at = from + k * step < final ? from + k * step : final;
        const u64 base = address_of(at >> reader.line_shift);
        read[k] = load_piece(reinterpret_cast<piece16 const*>(base + (at & reader.line_mask) + 16 * lane));
      }
    }
    order_before_recheck<Order>();
    // The lane that looks again depends on what all have read: by the fences before this meeting, or by the vote.
    g.sync();
    u64 tie = 0;
    if constexpr (Order == read_order::data) tie = any(g.ballot(tie_recheck_to_all<Order>(read, reader.zero) != 0)) ? 1 : 0;
    return !any(g.ballot(mine && !reader.unchanged(seen, tie)));
  }

 private:
  /// Of the frame that a lane has found. Collective, the same lane for all.
  PENSTOCK_FN u64 address_of(u32 lane_of_line) const {
    const u32 number = static_cast<u32>(g.shfl(frame, first_rank + lane_of_line)) - 1;
    return reader.frames_base + static_cast<u64>(number) * reader.line_bytes;
  }
};

/// The first pieces of a run that lies on one line, as many as make whole batches: every lane finds the line and validates what
/// it read itself, so the lanes need nothing of each other. Returns how many were used.
template <read_order Order, thread_group G, class Use>
PENSTOCK_FN u32 read_on_one_line(G const& g, line_reader const& reader, u64 begin, u32 pieces, Use const& use) {
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
    for (u32 k = 0; k < pieces_in_flight; ++k) read[k] = load_piece(from + used + k * width);
    order_before_recheck<Order>();
    if (any(g.ballot(!reader.unchanged(at, tie_recheck_to_all<Order>(read, reader.zero))))) break;
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) use(used + lane + k * width, read[k]);
    used += batch;
  } while (pieces - used >= batch);
  return used;
}

/// Calls use(k, piece k) for the 16-byte pieces from `begin` to `end`, addresses in the cache's line space. Collective.
/// REQUIRES: begin < end, both multiples of 16.
template <read_order Order, thread_group G, class Use>
PENSTOCK_FN void read_pieces(G const& g, line_reader const& reader, u64 begin, u64 end, Use const& use) {
  const u32 width = size(g);
  const u32 lane = index_in(g);
  const u32 step = 16 * width;
  const u32 first_rank = lowest(g.members());
  u64 run = begin;
  if (begin >> reader.line_shift == (end - 1) >> reader.line_shift) {
    run += 16 * read_on_one_line<Order>(g, reader, begin, static_cast<u32>((end - begin) / 16), use);
    if (run == end) return;
  }
  // A group with holes, of an odd size, or wider than a line: each lane for itself.
  const bool whole = (width & (width - 1)) == 0 && step <= reader.line_bytes;
  if (!whole || any(g.ballot(g.rank() != first_rank + lane))) {
    for (u64 at = run + 16ull * lane; at < end; at += step) use((at - begin) / 16, reader.template read<piece16, Order>(at));
    return;
  }
  const u64 asked_from = run;
  for (run &= ~static_cast<u64>(step - 1); run < end;) {
    const u64 first_line = run >> reader.line_shift;
    const u64 reach = (first_line + width) << reader.line_shift;
    const u64 stop = end < reach ? end : reach;
    span_window<Order, G> window{g,    reader, run,       reader.within(run), static_cast<u32>((stop - run + step - 1) / step),
                                 step, lane,   first_rank};
    window.find(first_line, (stop - 1) >> reader.line_shift);
    // Positions from here on count from `run` and fit 32 bits. Those from `low` on, `length` of them, were asked for.
    const u32 low = run < asked_from ? static_cast<u32>(asked_from - run) : 0;
    const u32 length = static_cast<u32>(stop - run) - low;
    // Of this lane's piece in step 0; where that lies before `begin` it wraps, and so comes out right for those behind.
    const u64 number = lane + (run >= begin ? (run - begin) / 16 : 0 - (begin - run) / 16);
    const u32 inner = low == 0 && stop - run == window.steps * step ? window.steps / pieces_in_flight * pieces_in_flight : 0;
    for (u32 s = 0; s < window.steps; s += pieces_in_flight) {
      piece16 read[pieces_in_flight];
      if (window.read(s, read)) {
        if (s < inner) {
          PENSTOCK_UNROLL
          for (u32 k = 0; k < pieces_in_flight; ++k) use(number + s * width + k * width, read[k]);
          continue;
        }
        PENSTOCK_UNROLL
        for (u32 k = 0; k < pieces_in_flight; ++k) {
          if ((s + k) * step + 16 * lane - low < length) use(number + s * width + k * width, read[k]);
        }
        continue;
      }
      for (u32 k = s; k < window.steps && k < s + pieces_in_flight; ++k) {
        const u32 at = k * step + 16 * lane;
        const bool asked = at - low < length;
        const piece16 late = reader.read_slowly<piece16>(g, asked, asked ? run + at : asked_from);
        if (asked) use(number + k * width, late);
      }
    }
    run = stop;
  }
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
