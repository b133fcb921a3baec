// Copies of whole lines between frames and memory that a controller shares, by the threads of a group: frames are accessed as
// memory_access.hpp says, and each thread has several loads under way.
#pragma once

#include "penstock/core/memory_access.hpp"

namespace penstock {

/// Copies a frame that others may store into to where a controller reads it: each aligned 8 bytes are old or new, never a mix.
/// Collective in effect: member `index` of `width` copies its share of 16-byte pieces. REQUIRES: bytes a multiple of 16, both
/// addresses aligned to 16.
PENSTOCK_FN inline void copy_out_of_frame(u64 to, u64 frame, u32 bytes, u32 index, u32 width) {
  constexpr u32 in_flight = 4;
  const u32 pieces = bytes / 16;
  auto const* const from = reinterpret_cast<piece16 const*>(frame);
  for (u32 first = index; first < pieces; first += in_flight * width) {
    piece16 held[in_flight];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < in_flight; ++k) {
      const u32 i = first + k * width;
      held[k] = load_piece(from + (i < pieces ? i : first));
    }
    PENSTOCK_UNROLL
    for (u32 k = 0; k < in_flight; ++k) {
      const u32 i = first + k * width;
      if (i < pieces) store_shared(to + 16ull * i, held[k]);
    }
  }
}

/// Lines that copy_out_of_frames copies side by side.
inline constexpr u32 lines_copied_at_once = 4;

/// Copies frames that others may store into to where a controller reads them: each aligned 8 bytes are old or new, never a mix.
/// An address of 0 is none. Collective in effect: member `index` of `width` copies its share of 16-byte pieces, four loads in
/// flight. REQUIRES: bytes a multiple of 16, all addresses aligned to 16; the first frame is one.
PENSTOCK_FN inline void copy_out_of_frames(u64 const (&to)[lines_copied_at_once], u64 const (&frames)[lines_copied_at_once],
                                           u32 bytes, u32 index, u32 width) {
  const u32 pieces = bytes / 16;
  if (frames[1] == 0) return copy_out_of_frame(to[0], frames[0], bytes, index, width);
  for (u32 i = index; i < pieces; i += width) {
    piece16 held[lines_copied_at_once];
    PENSTOCK_UNROLL
    for (u32 n = 0; n < lines_copied_at_once; ++n) {
      held[n] = load_piece(reinterpret_cast<piece16 const*>(frames[n] != 0 ? frames[n] : frames[0]) + i);
    }
    PENSTOCK_UNROLL
    for (u32 n = 0; n < lines_copied_at_once; ++n) {
      if (frames[n] != 0) store_shared(to[n] + 16ull * i, held[n]);
    }
  }
}

#if PENSTOCK_ON_DEVICE
/// 16 bytes of a host's memory: `Cached`, through L1, which asks for 32 bytes a time and has the other half for the next load.
template <bool Cached>
__device__ inline piece16 load_from_host(u64 address) {
  piece16 r;
  if constexpr (Cached) {
    asm volatile("ld.weak.global.v2.b64 {%0, %1}, [%2];" : "=l"(r.low), "=l"(r.high) : "l"(address) : "memory");
  } else {
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(r.low), "=l"(r.high) : "l"(address) : "memory");
  }
  return r;
}

__device__ inline void store_to_frame(u64 address, piece16 piece) {
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(address), "l"(piece.low), "l"(piece.high) : "memory");
}

inline constexpr u32 loads_of_a_round = 4;

/// Copies every `width`th piece of those from `index` on, of a short line: each round may be the only one.
template <bool Cached>
__device__ inline void copy_short_to_frame(u64 frame, u64 bounce, u32 pieces, u32 index, u32 width) {
  for (u32 first = index; first < pieces; first += loads_of_a_round * width) {
    piece16 held[loads_of_a_round];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < loads_of_a_round; ++k) {
      const u32 i = first + k * width;
      if (i < pieces) held[k] = load_from_host<Cached>(bounce + 16ull * i);
    }
    PENSTOCK_UNROLL
    for (u32 k = 0; k < loads_of_a_round; ++k) {
      const u32 i = first + k * width;
      if (i < pieces) store_to_frame(frame + 16ull * i, held[k]);
    }
  }
}

// What copies longer lines is not inlined: beside what a cold function holds the loads of a round do not fit its registers, and
// each is waited for to be spilled. In a function of their own four fit if their addresses differ by numbers that the compiler
// knows.

/// Copies every `Width`th piece, four a round.
template <bool Cached, u32 Width>
__device__ __noinline__ void copy_rounds_to_frame(u64 frame, u64 bounce, u32 rounds) {
  constexpr u32 stride = 16 * Width;
#pragma unroll 1
  for (; rounds != 0; --rounds, bounce += loads_of_a_round * stride, frame += loads_of_a_round * stride) {
    piece16 held[loads_of_a_round];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < loads_of_a_round; ++k) held[k] = load_from_host<Cached>(bounce + k * stride);
    PENSTOCK_UNROLL
    for (u32 k = 0; k < loads_of_a_round; ++k) store_to_frame(frame + k * stride, held[k]);
  }
}

/// Copies every `width`th piece of those from `index` on.
template <bool Cached>
__device__ __noinline__ void copy_pieces_to_frame(u64 frame, u64 bounce, u32 pieces, u32 index, u32 width) {
#pragma unroll 1
  for (u32 i = index; i < pieces; i += 2 * width) {
    const bool two = i + width < pieces;
    const piece16 first = load_from_host<Cached>(bounce + 16ull * i);
    piece16 second;
    if (two) second = load_from_host<Cached>(bounce + 16ull * (i + width));
    store_to_frame(frame + 16ull * i, first);
    if (two) store_to_frame(frame + 16ull * (i + width), second);
  }
}
#endif

/// So many threads that load 16 bytes each make whole requests to the host.
inline constexpr u32 whole_requests_width = 8;

/// Copies a bounce buffer (shared with a controller) into a frame. Collective in effect: member `index` of `width` copies its
/// share of 16-byte pieces. REQUIRES: bytes a multiple of 16, both addresses aligned to 16; what wrote the buffer happened
/// before, by an acquire of this thread or of a member that it has met since.
///
/// What a link carries is bound by requests: past L1 a lone thread makes one of each 16 bytes (5 GB/s by 4224 of them on an
/// H100, 21 through L1). With eight threads and more the pieces of a load make whole requests, and L1 is only in the way.
PENSTOCK_FN inline void copy_bounce_to_frame(u64 frame, u64 bounce, u32 bytes, u32 index, u32 width) {
  const u32 pieces = bytes / 16;
#if PENSTOCK_ON_DEVICE
  if (pieces < 32 * loads_of_a_round) {
    if (width < whole_requests_width) return copy_short_to_frame<true>(frame, bounce, pieces, index, width);
    return copy_short_to_frame<false>(frame, bounce, pieces, index, width);
  }
  u32 copied = 0;
  if (width == 32) {
    const u32 rounds = pieces / (32 * loads_of_a_round);
    copied = rounds * 32 * loads_of_a_round;
    copy_rounds_to_frame<false, 32>(frame + 16ull * index, bounce + 16ull * index, rounds);
  } else if (width == 1) {
    copied = pieces / loads_of_a_round * loads_of_a_round;
    copy_rounds_to_frame<true, 1>(frame, bounce, pieces / loads_of_a_round);
  }
  frame += 16ull * copied;
  bounce += 16ull * copied;
  if (copied == pieces) return;
  if (width < whole_requests_width) return copy_pieces_to_frame<true>(frame, bounce, pieces - copied, index, width);
  copy_pieces_to_frame<false>(frame, bounce, pieces - copied, index, width);
#else
  u64* to = reinterpret_cast<u64*>(frame);
  u64* from = reinterpret_cast<u64*>(bounce);
  for (u32 i = index; i < pieces; i += width) {
    device_ref<u64>(to[2 * i]).store(system_ref<u64>(from[2 * i]).load(relaxed), release);
    device_ref<u64>(to[2 * i + 1]).store(system_ref<u64>(from[2 * i + 1]).load(relaxed), release);
  }
#endif
}

/// The other way, for a Write through a bounce buffer; one thread. REQUIRES as above.
PENSTOCK_FN inline void copy_frame_to_bounce(u64 bounce, u64 frame, u32 bytes) {
  for (u32 at = 0; at < bytes; at += 8) {
    const u64 word = load_piece(reinterpret_cast<u64 const*>(frame + at));
    system_ref<u64>(*reinterpret_cast<u64*>(bounce + at)).store(word, relaxed);
  }
}

}  // namespace penstock
