// Loads and stores of frame bytes that other threads may replace at the same moment: relaxed, past L1, in pieces of up to 8
// bytes (16 on a GPU, which is two pieces in no order). Plain loads of a frame may hit a dead line of L1, so nothing else
// reads one (PROTOCOLS.md §2, "L1").
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/config.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace penstock {

struct alignas(16) piece16 {
  u64 low, high;
};

#if PENSTOCK_ON_DEVICE
// What L2 is to keep for as long as it has other bytes to give up, and what those are (PTX ISA, "createpolicy").
__device__ inline u64 kept_in_l2() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
  return policy;
}
__device__ inline u64 given_up_first() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}

// Frames and entries lie in global memory; a load that says so is spared the look at what its address means.
#define PENSTOCK_LOAD(width, constraint, result)                                                               \
  if constexpr (Acquire) {                                                                                     \
    asm volatile("ld.acquire.gpu.global." width " %0, [%1];" : "=" constraint(result) : "l"(from) : "memory"); \
  } else {                                                                                                     \
    asm volatile("ld.relaxed.gpu.global." width " %0, [%1];" : "=" constraint(result) : "l"(from) : "memory"); \
  }                                                                                                            \
  return std::bit_cast<T>(result)

template <bool Acquire, class T>
__device__ inline T load_global(T const* p) {
  const std::size_t from = __cvta_generic_to_global(p);
  if constexpr (sizeof(T) == 16) {
    static_assert(!Acquire, "there is no acquire of 16 bytes");
    piece16 r;
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(r.low), "=l"(r.high) : "l"(from) : "memory");
    return std::bit_cast<T>(r);
  } else if constexpr (sizeof(T) == 8) {
    u64 r;
    PENSTOCK_LOAD("b64", "l", r);
  } else if constexpr (sizeof(T) == 4) {
    u32 r;
    PENSTOCK_LOAD("b32", "r", r);
  } else if constexpr (sizeof(T) == 2) {
    u16 r;
    PENSTOCK_LOAD("b16", "h", r);
  } else {
    u16 r;  // there is no operand of 8 bits
    if constexpr (Acquire) {
      asm volatile("ld.acquire.gpu.global.u8 %0, [%1];" : "=h"(r) : "l"(from) : "memory");
    } else {
      asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=h"(r) : "l"(from) : "memory");
    }
    return std::bit_cast<T>(static_cast<u8>(r));
  }
}
#undef PENSTOCK_LOAD
#endif

/// The loads above it are not put off until a branch below it is decided that may not need them: those that do not need each
/// other are then on their way together, and a branch costs no trip to memory of its own.
PENSTOCK_FN inline void load_above() {
#if PENSTOCK_ON_DEVICE
  asm volatile("" ::: "memory");
#endif
}

/// One aligned piece of 1, 2, 4, 8 or 16 bytes of a frame. On a CPU always an acquire.
template <class T>
PENSTOCK_FN inline T load_piece(T const* p) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
#if PENSTOCK_ON_DEVICE
  return load_global<false>(p);
#else
  if constexpr (sizeof(T) == 16) {
    u64* words = reinterpret_cast<u64*>(const_cast<T*>(p));
    const piece16 r{device_ref<u64>(words[0]).load(acquire), device_ref<u64>(words[1]).load(acquire)};
    return std::bit_cast<T>(r);
  } else {
    using word = std::conditional_t<sizeof(T) == 8, u64,
                                    std::conditional_t<sizeof(T) == 4, u32, std::conditional_t<sizeof(T) == 2, u16, u8>>>;
    return std::bit_cast<T>(device_ref<word>(*reinterpret_cast<word*>(const_cast<T*>(p))).load(acquire));
  }
#endif
}

/// 16 bytes of which others store some meanwhile, for a hint: it may be older than what this thread has seen. ptxas puts no
/// YIELD into a loop of such loads, as it does into one of strong ones (PROTOCOLS.md §2, "Lanes that meet again").
PENSTOCK_FN inline piece16 load_hint(piece16 const* p) {
#if PENSTOCK_ON_DEVICE
  piece16 r;
  asm volatile("ld.weak.global.L1::no_allocate.v2.b64 {%0, %1}, [%2];"
               : "=l"(r.low), "=l"(r.high)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return r;
#else
  return load_piece(p);
#endif
}

/// 16 bytes of a line that a group reads whole: L2 gives them up first, and keeps what is looked at again and again, the
/// entries above all.
PENSTOCK_FN inline piece16 load_streamed(piece16 const* p) {
#if PENSTOCK_ON_DEVICE
  const std::size_t from = __cvta_generic_to_global(p);
  const u64 policy = given_up_first();
  piece16 r;
  asm volatile("ld.relaxed.gpu.global.L2::cache_hint.v2.b64 {%0, %1}, [%2], %3;"
               : "=l"(r.low), "=l"(r.high)
               : "l"(from), "l"(policy)
               : "memory");
  return r;
#else
  return load_piece(p);
#endif
}

/// The same with acquire on every executor; up to 8 bytes.
template <class T>
PENSTOCK_FN inline T load_piece_acquire(T const* p) {
#if PENSTOCK_ON_DEVICE
  return load_global<true>(p);
#else
  return load_piece(p);
#endif
}

/// 16 bytes of memory that a controller shares with its host, past L1: two pieces of 8 in no order. On a CPU the store is a
/// release, as in `copy_into_frame`. REQUIRES: address aligned to 16.
PENSTOCK_FN inline piece16 load_shared(u64 address) {
  piece16 r;
#if PENSTOCK_ON_DEVICE
  asm volatile("ld.relaxed.sys.v2.b64 {%0, %1}, [%2];" : "=l"(r.low), "=l"(r.high) : "l"(address) : "memory");
#else
  u64* from = reinterpret_cast<u64*>(address);
  r = {system_ref<u64>(from[0]).load(relaxed), system_ref<u64>(from[1]).load(relaxed)};
#endif
  return r;
}

PENSTOCK_FN inline void store_shared(u64 address, piece16 value) {
#if PENSTOCK_ON_DEVICE
  asm volatile("st.relaxed.sys.v2.b64 [%0], {%1, %2};" ::"l"(address), "l"(value.low), "l"(value.high) : "memory");
#else
  u64* to = reinterpret_cast<u64*>(address);
  system_ref<u64>(to[0]).store(value.low, release);
  system_ref<u64>(to[1]).store(value.high, release);
#endif
}

/// Stores one aligned piece of 1, 2, 4 or 8 bytes into a frame under a pin.
///
/// Why release: the frame may have had another line before. A validated read of that one which sees this store must find the
/// claim of this one when it looks at the entry again; the claim happens before the pin, the store hands that on.
template <class T>
PENSTOCK_FN inline void store_piece(T* p, T value) {
  device_ref<T>(*p).store(value, release);
}

/// The same for 16 bytes, two pieces of 8 in no order. REQUIRES: order_claim_before_bytes() by this thread under the same pin:
/// on a GPU one fence then serves many stores.
PENSTOCK_FN inline void store_piece_after_fence(piece16* p, piece16 value) {
#if PENSTOCK_ON_DEVICE
  const std::size_t to = __cvta_generic_to_global(p);
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(value.low), "l"(value.high) : "memory");
#else
  store_piece(&p->low, value.low);
  store_piece(&p->high, value.high);
#endif
}

/// Adds to a number of 4 or 8 bytes in a frame; one instruction on a GPU, however many threads add to the same one. REQUIRES:
/// as store_piece_after_fence.
template <class T>
PENSTOCK_FN inline void add_piece_after_fence(T* p, T value) {
#if PENSTOCK_ON_DEVICE
  device_ref<T>(*p).fetch_add(value, relaxed);
#else
  device_ref<T>(*p).fetch_add(value, release);
#endif
}

/// Adds to the floating-point number at an address in a frame and gives what it was; one instruction on a GPU, however many
/// threads add to the same one. A release operation.
template <class Float>
PENSTOCK_FN inline Float fetch_add_number(u64 address, Float value) {
#if PENSTOCK_ON_DEVICE
  return device_ref<Float>(*reinterpret_cast<Float*>(address)).fetch_add(value, release);
#else
  using word_type = std::conditional_t<sizeof(Float) == 8, u64, u32>;
  device_ref<word_type> word(*reinterpret_cast<word_type*>(address));
  word_type old = word.load(relaxed);
  while (!word.compare_exchange_weak(old, std::bit_cast<word_type>(std::bit_cast<Float>(old) + value), release, relaxed)) {}
  return std::bit_cast<Float>(old);
#endif
}

// Additions to words of 8 bytes in global memory (entries, counters), on a GPU by one instruction that says where the word is:
// of an address that may be anywhere, also an addition without a result is waited for, to learn whether it was one in shared
// memory.

/// Adds to a word that L2 is asked to keep, or memory would see each addition come and go; gives what the word was. `Acquire`:
/// on a CPU always one.
template <bool Acquire>
PENSTOCK_FN u64 fetch_add_kept(u64& word, u64 n) {
#if PENSTOCK_ON_DEVICE
  const std::size_t at = __cvta_generic_to_global(&word);
  const u64 policy = kept_in_l2();
  u64 old;
  if constexpr (Acquire) {
    asm volatile("atom.acquire.gpu.global.add.L2::cache_hint.u64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(at), "l"(n), "l"(policy)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.gpu.global.add.L2::cache_hint.u64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(at), "l"(n), "l"(policy)
                 : "memory");
  }
  return old;
#else
  return device_ref<u64>(word).fetch_add(n, acquire);
#endif
}

/// The same without a result. `Release`: on a CPU always one.
template <bool Release>
PENSTOCK_FN void add_kept(u64& word, u64 n) {
#if PENSTOCK_ON_DEVICE
  const std::size_t at = __cvta_generic_to_global(&word);
  const u64 policy = kept_in_l2();
  if constexpr (Release) {
    asm volatile("red.release.gpu.global.add.L2::cache_hint.u64 [%0], %1, %2;" ::"l"(at), "l"(n), "l"(policy) : "memory");
  } else {
    asm volatile("red.relaxed.gpu.global.add.L2::cache_hint.u64 [%0], %1, %2;" ::"l"(at), "l"(n), "l"(policy) : "memory");
  }
#else
  device_ref<u64>(word).fetch_add(n, release);
#endif
}

PENSTOCK_FN inline void add_release(u64& word, u64 n) {
#if PENSTOCK_ON_DEVICE
  const std::size_t at = __cvta_generic_to_global(&word);
  asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(n) : "memory");
#else
  device_ref<u64>(word).fetch_add(n, release);
#endif
}

PENSTOCK_FN inline void add_relaxed(u64& word, u64 n) {
#if PENSTOCK_ON_DEVICE
  const std::size_t at = __cvta_generic_to_global(&word);
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(n) : "memory");
#else
  device_ref<u64>(word).fetch_add(n, relaxed);
#endif
}

/// Stands before stores and additions that publish what this thread has done and acquired: on a GPU one fence serves several.
/// On a CPU each of them is a release by itself.
PENSTOCK_FN inline void order_before_telling() {
#if PENSTOCK_ON_DEVICE
  fence_release();
#endif
}

template <class T>
PENSTOCK_FN void store_after_fence(T& word, T value) {
#if PENSTOCK_ON_DEVICE
  device_ref<T>(word).store(value, relaxed);
#else
  device_ref<T>(word).store(value, release);
#endif
}

PENSTOCK_FN inline void add_after_fence(u64& word, u64 n) {
#if PENSTOCK_ON_DEVICE
  add_relaxed(word, n);
#else
  add_release(word, n);
#endif
}

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
