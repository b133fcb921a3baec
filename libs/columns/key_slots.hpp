// Open addressing: a key lies in the first slot from its own on that was free.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock::columns {

/// The finalizer of MurmurHash3.
PENSTOCK_FN inline u64 mixed(u64 key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdull;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ull;
  return key ^ key >> 33;
}

/// Where the search for a key begins. REQUIRES: slots a power of two.
PENSTOCK_FN inline u64 first_slot(u64 key, u64 slots) { return mixed(key) & (slots - 1); }

}  // namespace penstock::columns
