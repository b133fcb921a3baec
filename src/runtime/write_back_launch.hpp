// The launches of a flush, of a discard and of a cleaner: from the library with CUDA they come compiled by nvcc, for both
// executors.
#pragma once

#include "penstock/executor/executor.hpp"
#include "penstock/write_back/flush.hpp"

namespace penstock {

/// What a launch is given; the pointers are the executor's.
struct write_back_job {
  line_cache_view const* cache = nullptr;
  flush_report* report = nullptr;
  write_slot* device_flush = nullptr;  ///< of a Flush
  line_range range;
};

/// Each returns when all groups are done.
void launch_flush_lines(executor& on, write_back_job const& job, u64 items);
void launch_flush_device(executor& on, write_back_job const& job);
void launch_discard_lines(executor& on, write_back_job const& job, u64 items);

/// Returns when it is on the stream (CUDA) or done (CPU).
void launch_clean_beside(executor& on, void* stream, line_cache_view const* cache, u64 groups, u64 longest_ns);

/// Loads the kernels: see prepare_launch.
void prepare_write_back(executor& on);

}  // namespace penstock
