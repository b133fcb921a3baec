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

}  // namespace penstock
