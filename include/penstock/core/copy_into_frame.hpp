// The only way in which a CPU thread puts bytes into a frame, and its counterpart for taking them out.
#pragma once

#include "penstock/core/atomic.hpp"

#include <cstring>

namespace penstock {

/// Copies `bytes` to `dst` with 8-byte atomic stores. REQUIRES: dst aligned to 8, bytes a multiple of 8.
///
/// Why release: a validated read that saw a new byte must find the claim of the frame when it looks at the entry again. The
/// claim happens before this copy, each store hands that on, and the reader's acquire load of the byte takes it up (see
/// `order_claim_before_bytes`). On x86 a release store is a plain mov; ThreadSanitizer sees what it means.
PENSTOCK_FN inline void copy_into_frame(void* dst, void const* src, u64 bytes) {
  constexpr u64 batch = 8;
  auto* to = static_cast<u64*>(dst);
  auto const* from = static_cast<unsigned char const*>(src);
  const u64 words = bytes / sizeof(u64);
  u64 k = 0;
  for (; k + batch <= words; k += batch) {
    u64 word[batch];
    std::memcpy(word, from + k * sizeof(u64), sizeof word);
    for (u64 i = 0; i < batch; ++i) device_ref<u64>(to[k + i]).store(word[i], release);
  }
  for (; k < words; ++k) {
    u64 word;
    std::memcpy(&word, from + k * sizeof(u64), sizeof word);
    device_ref<u64>(to[k]).store(word, release);
  }
}

/// Copies out of a frame while holders of write pins may store into it: each aligned 8 bytes are old or new, never a mix.
/// REQUIRES: src aligned to 8, bytes a multiple of 8.
PENSTOCK_FN inline void copy_from_frame(void* dst, void const* src, u64 bytes) {
  auto* to = static_cast<unsigned char*>(dst);
  auto* from = static_cast<u64*>(const_cast<void*>(src));  // atomic_ref<T const> comes with C++26 only
  for (u64 k = 0; k < bytes / sizeof(u64); ++k) {
    const u64 word = device_ref<u64>(from[k]).load(relaxed);
    std::memcpy(to + k * sizeof(u64), &word, sizeof word);
  }
}

}  // namespace penstock
