// Names of open files as 128 bits. The key is drawn for each folder, so names that collide cannot be prepared; two of 2^40
// names do by chance once in 2^49 folders.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// A bijection whose every output bit depends on every input bit (the finalizer of MurmurHash3 with Stafford's constants,
/// "mix13").
PENSTOCK_FN constexpr u64 mix_word(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

struct name_hash {
  u64 part[2];
};

/// Trivially copyable.
struct name_hasher {
  u64 key[2] = {};

  /// REQUIRES: `bytes` is less than 2^32; text in memory of this thread.
  PENSTOCK_FN name_hash operator()(char const* text, u32 bytes) const {
    name_hash hash{{mix_word(key[0] ^ bytes), mix_word(key[1] + bytes)}};
    for (u32 at = 0; at < bytes; at += 8) {
      u64 word = 0;
      for (u32 k = 0; k < 8 && at + k < bytes; ++k) word |= static_cast<u64>(static_cast<u8>(text[at + k])) << 8 * k;
      hash.part[0] = mix_word(hash.part[0] ^ word);
      hash.part[1] = mix_word(hash.part[1] + (word ^ key[0]));
    }
    return hash;
  }
};

}  // namespace penstock
