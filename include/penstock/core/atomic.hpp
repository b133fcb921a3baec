// The only two ways in which Penstock shares memory, and the few places that need more than an order on an operation.
//
// `device_ref<T>`: threads of one GPU, or of one process. `system_ref<T>`: memory that a controller shares (rings, doorbells,
// bounce buffers); no read-modify-write there (PROTOCOLS.md, W8).
#pragma once

#include "penstock/core/config.hpp"

#if defined(__CUDACC__)
#include <cuda/atomic>
#elif defined(PENSTOCK_SCHEDULED)
#include "penstock/core/scheduled.hpp"
#else
#include <atomic>
#endif

namespace penstock {

#if defined(__CUDACC__)
template <class T>
using device_ref = cuda::atomic_ref<T, cuda::thread_scope_device>;
template <class T>
using system_ref = cuda::atomic_ref<T, cuda::thread_scope_system>;
inline constexpr auto relaxed = cuda::memory_order_relaxed;
inline constexpr auto acquire = cuda::memory_order_acquire;
inline constexpr auto release = cuda::memory_order_release;
inline constexpr auto acq_rel = cuda::memory_order_acq_rel;
#else
#if defined(PENSTOCK_SCHEDULED)
template <class T>
using device_ref = scheduled::atomic_ref<T>;
template <class T>
using system_ref = scheduled::atomic_ref<T>;
#else
template <class T>
using device_ref = std::atomic_ref<T>;
template <class T>
using system_ref = std::atomic_ref<T>;
#endif
inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
#endif

/// Raises a word to `least` if it is less. No value comes back, so a GPU does not wait for it.
PENSTOCK_FN inline void raise_to(u64& word, u64 least) {
#if PENSTOCK_ON_DEVICE
  device_ref<u64>(word).fetch_max(least, relaxed);
#else
  device_ref<u64> shared(word);
  u64 seen = shared.load(relaxed);
  while (seen < least && !shared.compare_exchange_weak(seen, least, relaxed)) {}
#endif
}

/// Publishes what was written before. `within_gpu`: all readers are this GPU's threads; a fence of its own scope is much
/// cheaper.
PENSTOCK_FN inline void publish_word(u32& word, u32 value, [[maybe_unused]] bool within_gpu) {
#if PENSTOCK_ON_DEVICE
  if (within_gpu) return device_ref<u32>(word).store(value, release);
#endif
  system_ref<u32>(word).store(value, release);
}

/// Makes a word that several threads lower at once no larger than `to`.
PENSTOCK_FN inline void lower_to(u64& word, u64 to) {
  device_ref<u64> ref(word);
  u64 seen = ref.load(relaxed);
  while (seen > to && !ref.compare_exchange_weak(seen, to, relaxed, relaxed)) {}
}

PENSTOCK_FN inline void lower_to(u32& word, u32 to) {
  const device_ref<u32> shared(word);
#if PENSTOCK_ON_DEVICE
  shared.fetch_min(to, relaxed);
#else
  u32 seen = shared.load(relaxed);
  while (seen > to && !shared.compare_exchange_weak(seen, to, relaxed)) {}
#endif
}

#if PENSTOCK_ON_DEVICE
// Fences of one direction (PTX ISA 8.6, "membar / fence", `.sem`), for the compiler makes a whole one of either: one that only
// acquires empties L1 and waits for nothing but this thread's loads, where a whole one waits until all that this multiprocessor
// has stored is seen; one that only releases leaves L1 as it is. Where there is neither, both are whole.
#if __CUDA_ARCH__ >= 900 && (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 8))
#define PENSTOCK_FENCE(direction, scope) asm volatile("fence." direction "." scope ";" ::: "memory")
#else
#define PENSTOCK_FENCE(direction, scope) asm volatile("fence.acq_rel." scope ";" ::: "memory")
#endif
__device__ inline void fence_acquire() { PENSTOCK_FENCE("acquire", "gpu"); }
__device__ inline void fence_acquire_system() { PENSTOCK_FENCE("acquire", "sys"); }
__device__ inline void fence_release() { PENSTOCK_FENCE("release", "gpu"); }
__device__ inline void fence_release_system() { PENSTOCK_FENCE("release", "sys"); }
#undef PENSTOCK_FENCE
#endif

/// The order of loads and exchanges that are followed by `order_after_seeing`: on a GPU one fence serves several, whichever
/// threads stored what they saw. On a CPU each of them is an acquire by itself.
#if PENSTOCK_ON_DEVICE
inline constexpr auto seen_before_fence = relaxed;
#else
inline constexpr auto seen_before_fence = acquire;
#endif
PENSTOCK_FN inline void order_after_seeing() {
#if PENSTOCK_ON_DEVICE
  fence_acquire_system();
#endif
}

/// Stands between the claim of a frame and its first new byte (PROTOCOLS.md §2, "order before the first byte of a fill").
///
/// A validated read that saw a new byte must find the claim when it looks at the entry again: on a GPU this fence and the one
/// in `order_read_before_recheck` synchronize, so the claim happens before the second look. On a CPU the bytes are stored with
/// release (`copy_into_frame`) and loaded with acquire, which says the same without a fence; ThreadSanitizer sees those.
PENSTOCK_FN inline void order_claim_before_bytes() {
#if PENSTOCK_ON_DEVICE
  fence_release();
#endif
}

/// R3 of the validated read: the element's load stays before the second load of the entry. See `order_claim_before_bytes`.
PENSTOCK_FN inline void order_read_before_recheck() {
#if PENSTOCK_ON_DEVICE
  fence_acquire();
#endif
}

}  // namespace penstock
