// What the drives of the benchmarks hold.
#pragma once

#include "libs/bench/pattern.hpp"

namespace penstock::bench {

/// What word w of block b of a drive holds; of drive 0 what an array of known values holds there.
PENSTOCK_FN inline u64 block_word(u32 drive, u64 block, u64 word, u32 block_words) {
  return value_at(block * block_words + word) ^ static_cast<u64>(drive) << 56;
}

}  // namespace penstock::bench
