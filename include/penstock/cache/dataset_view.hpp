// What a cache knows of one dataset that it serves.
#pragma once

#include "penstock/core/counters.hpp"
#include "penstock/queue/volume.hpp"

namespace penstock {

/// Whose lines give their frames up first. A number that is greater gives up later.
enum class advice : u32 {
  stream,  ///< read once: first, also if it was used
  normal,  ///< by the clock
  keep,    ///< read again and again: after the others
};

/// One dataset (a file, a namespace) that a cache serves: its lines in the cache's line space, and where they lie.
struct dataset_view {
  u64 first_line = 0;
  u64 lines = 0;
  u64 bytes = 0;  ///< its last line may be cut short
  u32 index = 0;  ///< in the cache
  bool writable = false;
  advice advised = advice::normal;
  u32 part = ~0u;  ///< its lines take frames below this number (`direct`), or ways of each set; for a share of the cache
  volume_view volume;
  counter_set_view counters;
};

}  // namespace penstock
