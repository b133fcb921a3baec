// The only way in which a CPU thread puts bytes into a frame, and its counterpart for taking them out.
#pragma once

#include "penstock/core/atomic.hpp"

#include <cstdint>
#include <cstring>

namespace penstock {

/// A word outside the frames: memory that holds a namespace, or a buffer of one command. Aligned ones are loaded and stored as
/// one: commands of several queues may meet in a block of media, and each aligned 8 bytes of it are those of one of them.
template <bool aligned>
inline u64 load_outside(unsigned char const* from) {
  if constexpr (aligned) return __atomic_load_n(reinterpret_cast<u64 const*>(from), __ATOMIC_RELAXED);
  u64 word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <bool aligned>
inline void store_outside(unsigned char* to, u64 word) {
  if constexpr (aligned) return __atomic_store_n(reinterpret_cast<u64*>(to), word, __ATOMIC_RELAXED);
  std::memcpy(to, &word, sizeof word);
}

// Four words by one instruction: of single ones a core has no more under way than its store buffer holds, which are those of
// eight cache lines, and waits for them where they are not in its caches (512 bytes of a page: half as long). The processor
// moves each aligned word of a vector as one, and its stores become visible in the order of the program, as those of single
// words do. ThreadSanitizer has to see words.
#if defined(__x86_64__) && !defined(PENSTOCK_TSAN)
using word_vector = long long __attribute__((vector_size(32), aligned(1), may_alias));

__attribute__((target("avx2"))) inline void copy_vectors(unsigned char* to, unsigned char const* from, u64 bytes) {
  constexpr u64 width = sizeof(word_vector);
  for (u64 done = 0; done < bytes; done += width) {
    const word_vector words = *reinterpret_cast<word_vector const*>(from + done);
    asm volatile("" ::: "memory");  // neither the loads nor the stores change their order
    *reinterpret_cast<word_vector*>(to + done) = words;
  }
}

/// What is moved so of `bytes`, from the first on.
inline u64 copy_by_vectors(void* to, void const* from, u64 bytes) {
  const u64 whole = bytes - bytes % sizeof(word_vector);
  if (!__builtin_cpu_supports("avx2")) return 0;
  copy_vectors(static_cast<unsigned char*>(to), static_cast<unsigned char const*>(from), whole);
  return whole;
}
#else
inline u64 copy_by_vectors(void*, void const*, u64) { return 0; }
#endif

inline bool is_word_aligned(void const* address) { return reinterpret_cast<std::uintptr_t>(address) % sizeof(u64) == 0; }

template <bool aligned>
inline void copy_words_into_frame(u64* to, unsigned char const* from, u64 left) {
  // Four at a time in registers: an array of them would go through the stack, which halves the rate (g++ 12).
  for (; left >= 4; left -= 4, to += 4, from += 32) {
    const u64 first = load_outside<aligned>(from), second = load_outside<aligned>(from + 8);
    const u64 third = load_outside<aligned>(from + 16), fourth = load_outside<aligned>(from + 24);
    device_ref<u64>(to[0]).store(first, release);
    device_ref<u64>(to[1]).store(second, release);
    device_ref<u64>(to[2]).store(third, release);
    device_ref<u64>(to[3]).store(fourth, release);
  }
  for (; left != 0; --left, ++to, from += 8) device_ref<u64>(*to).store(load_outside<aligned>(from), release);
}

template <bool aligned>
inline void copy_words_from_frame(unsigned char* to, u64* from, u64 words) {
  for (u64 k = 0; k < words; ++k, to += sizeof(u64)) store_outside<aligned>(to, device_ref<u64>(from[k]).load(relaxed));
}

/// Copies `bytes` to `dst`, each 8 of them atomically. REQUIRES: dst aligned to 8, bytes a multiple of 8.
///
/// Why release: a validated read that saw a new byte must find the claim of the frame when it looks at the entry again. The
/// claim happens before this copy, each store hands that on, and the reader's acquire load of the byte takes it up (see
/// `order_claim_before_bytes`). On x86 a release store is a plain mov; ThreadSanitizer sees what it means.
inline void copy_into_frame(void* dst, void const* src, u64 bytes) {
  const u64 done = copy_by_vectors(dst, src, bytes), words = done / sizeof(u64), left = (bytes - done) / sizeof(u64);
  auto* to = static_cast<u64*>(dst) + words;
  auto const* from = static_cast<unsigned char const*>(src) + done;
  if (is_word_aligned(src)) return copy_words_into_frame<true>(to, from, left);
  copy_words_into_frame<false>(to, from, left);
}

/// Copies out of a frame while holders of write pins may store into it: each aligned 8 bytes are old or new, never a mix.
/// REQUIRES: src aligned to 8, bytes a multiple of 8.
inline void copy_from_frame(void* dst, void const* src, u64 bytes) {
  const u64 done = copy_by_vectors(dst, src, bytes), words = done / sizeof(u64), left = (bytes - done) / sizeof(u64);
  auto* to = static_cast<unsigned char*>(dst) + done;
  auto* from = static_cast<u64*>(const_cast<void*>(src)) + words;  // atomic_ref<T const> comes with C++26 only
  if (is_word_aligned(dst)) return copy_words_from_frame<true>(to, from, left);
  copy_words_from_frame<false>(to, from, left);
}

}  // namespace penstock
