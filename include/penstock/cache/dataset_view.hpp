// What a cache knows of one dataset that it serves.
#pragma once

#include "penstock/core/counters.hpp"
#include "penstock/queue/volume.hpp"

namespace penstock {

/// One dataset (a file, a namespace) that a cache serves: its lines in the cache's line space, and where they lie.
struct dataset_view {
  u64 first_line = 0;
  u64 lines = 0;
  u64 bytes = 0;  ///< its last line may be cut short
  volume_view volume;
  counter_set_view counters;
};

}  // namespace penstock
