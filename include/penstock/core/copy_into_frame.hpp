// The only way in which a CPU thread puts bytes into a frame, and its counterpart for taking them out.
#pragma once

#include "penstock/core/atomic.hpp"

#include <cstring>

namespace penstock {

/// Loads 8 bytes from any address; nobody stores to them meanwhile.
PENSTOCK_FN inline u64 load_word(unsigned char const* from) {
  u64 word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// Copies `bytes` to `dst` with 8-byte atomic stores. REQUIRES: dst aligned to 8, bytes a multiple of 8.
///
/// Why release: a validated read that saw a new byte must find the claim of the frame when it looks at the entry again. The
/// claim happens before this copy, each store hands that on, and the reader's acquire load of the byte takes it up (see
/// `order_claim_before_bytes`). On x86 a release store is a plain mov; ThreadSanitizer sees what it means.
PENSTOCK_FN inline void copy_into_frame(void* dst, void const* src, u64 bytes) {
  auto* to = static_cast<u64*>(dst);
  auto const* from = static_cast<unsigned char const*>(src);
  u64 left = bytes / sizeof(u64);
  // Four at a time in registers: an array of them would go through the stack, which halves the rate (g++ 12).
  for (; left >= 4; left -= 4, to += 4, from += 32) {
    const u64 first = load_word(from), second = load_word(from + 8);
    const u64 third = load_word(from + 16), fourth = load_word(from + 24);
    device_ref<u64>(to[0]).store(first, release);
    device_ref<u64>(to[1]).store(second, release);
    device_ref<u64>(to[2]).store(third, release);
    device_ref<u64>(to[3]).store(fourth, release);
  }
  for (; left != 0; --left, ++to, from += 8) device_ref<u64>(*to).store(load_word(from), release);
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
