// Whether the counters of a soak add up: each fault that a drive injected must be found again on the host's side.
#pragma once

#include "libs/bench/soak_kernels.hpp"
#include "penstock/controller/model_controller.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

/// All counts of a run, as they stand between two launches.
struct soak_account {
  model_counts drive;
  queue_counts queues;  ///< sums
  cache_stats cache;
  soak_counts program;
  u64 given_up = 0;  ///< queues whose controller was given up
  u64 flushes = 0, failed_flushes = 0;
};

queue_counts sum_of(std::vector<queue_counts> const& queues);
void add_to(model_counts& sum, model_counts const& more);

/// Whether every command that was published is over for its waiters.
bool all_told(queue_counts const& sum);

/// Throws penstock::error (world) with the equation that does not hold. REQUIRES: all_told, and the drive has nothing in
/// flight: what a reset has not discarded is answered. `exact`: one thread per group, and a drive that only works while it is
/// polled, so that no answer lies unread and each failure is one operation's.
void check_account(soak_account const& now, u64 line_bytes, bool exact);

}  // namespace penstock::bench
