// Runs of bytes, read by a whole group in pieces of 16: rows, lists, whole lines.
//
// One look at the directory serves many lines: lane k finds line k of the run, and hands its frame to whoever reads there. The
// argument of the validated read, across lanes (PROTOCOLS.md §2): all lanes have read and fenced before the lane that found a
// line looks at its entry again; only then is what was read used.
#pragma once

#include "penstock/array/line_reader.hpp"

namespace penstock {

/// Calls use(address, piece) for the 16-byte pieces from `begin` to `end`, addresses in the cache's line space. Collective.
/// REQUIRES: begin < end, both multiples of 16.
template <thread_group G, class Use>
PENSTOCK_FN void read_pieces(G const& g, line_reader const& reader, u64 begin, u64 end, Use const& use) {
  constexpr u32 in_flight = 8;  // loads of each lane
  const u32 width = size(g);
  const u32 at = index_in(g);
  const u64 batch_bytes = 16ull * in_flight * width;
  for (u64 run = begin; run < end;) {
    const u64 first_line = run >> reader.line_shift;
    const u64 last_line = (end - 1) >> reader.line_shift;
    const u64 mine = first_line + at;
    const bool wanted = mine <= last_line;
    found_line seen{};
    if (wanted) seen = reader.directory.find(line_id{mine});
    const bool absent = wanted && seen.state() == line_state::empty;
    if (any(g.ballot(absent))) prefetch_line(g, *reader.cache, reader.dataset, absent, line_id{mine});
    const u64 frame = reader.hits(seen) ? reader.frame_of(seen) : 0;
    const u64 run_end = end < (first_line + width) << reader.line_shift ? end : (first_line + width) << reader.line_shift;
    for (; run < run_end; run += batch_bytes) {
      piece16 read[in_flight];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < in_flight; ++k) {
        const u64 address = run + 16ull * (k * width + at);
        const u32 owner = address < run_end ? static_cast<u32>((address >> reader.line_shift) - first_line) : 0;
        const u64 from = g.shfl(frame, nth(g.members(), owner));
        const bool there = address < run_end && from != 0;
        read[k] = there ? load_piece(reinterpret_cast<piece16 const*>(from + reader.within(address))) : piece16{};
      }
      order_read_before_recheck();
      g.sync();
      const u64 last = (run + batch_bytes < run_end ? run + batch_bytes : run_end) - 1;
      const bool touched = wanted && mine >= run >> reader.line_shift && mine <= last >> reader.line_shift;
      const bool changed = touched && (frame == 0 || !reader.unchanged(seen));
      const bool good = !any(g.ballot(changed));
      if (!good) {
        for (u32 k = 0; k < in_flight; ++k) {
          const u64 address = run + 16ull * (k * width + at);
          const bool here = address < run_end;
          const piece16 late = reader.template read_slowly<piece16>(g, here, here ? address : run);
          if (here) use(address, late);
        }
        continue;
      }
      PENSTOCK_UNROLL
      for (u32 k = 0; k < in_flight; ++k) {
        const u64 address = run + 16ull * (k * width + at);
        if (address < run_end) use(address, read[k]);
      }
    }
    run = run_end;
  }
}

/// The same for memory that the kernel reaches, where it holds T's from `begin` to `end`: pieces that lie wholly inside by one
/// load, those at the ends element by element.
template <class T, thread_group G, class Use>
PENSTOCK_FN void read_resident_pieces(G const& g, u64 begin, u64 end, Use const& use) {
  for (u64 address = (begin & ~15ull) + 16ull * index_in(g); address < end; address += 16ull * size(g)) {
    if (address >= begin && address + 16 <= end) {
      use(address, *reinterpret_cast<piece16 const*>(address));
      continue;
    }
    struct elements_of {
      T of[sizeof(piece16) / sizeof(T)];
    } some{};
    for (u32 k = 0; k < sizeof(piece16) / sizeof(T); ++k) {
      const u64 one = address + k * sizeof(T);
      if (one >= begin && one < end) some.of[k] = *reinterpret_cast<T const*>(one);
    }
    use(address, std::bit_cast<piece16>(some));
  }
}

}  // namespace penstock
