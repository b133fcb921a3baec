// Open addressing: a key lies in the first slot from its own on that was free.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock::columns {

/// Where the search for a key begins. REQUIRES: slots a power of two.
PENSTOCK_FN inline u64 first_slot(u64 key, u64 slots) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdull;  // the finalizer of MurmurHash3
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ull;
  return (key ^ key >> 33) & (slots - 1);
}

}  // namespace penstock::columns
