// How the items of a launch are shared among groups, for bodies and for those that launch them.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// The items of one group: first, first + step, ... below last.
struct grid_range {
  u64 first = 0;
  u64 last = 0;
  u64 step = 1;
};

/// CUDA blocks; four of them fit a multiprocessor, which leaves 64 registers a thread. With eight it is 32, and twice the
/// threads to wait with.
inline constexpr u32 cuda_block_threads = 256;
inline constexpr u32 cuda_blocks_per_unit = 4;

}  // namespace penstock
