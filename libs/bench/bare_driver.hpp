// Runs bare clients over some queues of a controller: its ceiling.
#pragma once

#include "libs/bench/bare_queues.hpp"

namespace penstock::bench {

/// The largest batches of which a ring holds all that may be in flight, up to what pays.
u32 most_batch_of(u32 entries);
u32 usual_batch(executor const& on, u32 entries);

class bare_driver {
 public:
  /// `units`: SMs that issue; 0: all.
  bare_driver(executor& on, controller& owner, bare_options const& queues, u32 batch, u64 blocks, u32 units);

  /// So many batches on each of the first `used` queues. Throws penstock::error (world) if a command failed, was not answered
  /// in time, or brought wrong bytes.
  kernel_facts run(u64 batches, bool writes, bool whole);
  /// Batches of each queue that take about a tenth of a second.
  u64 calibrated(bool writes);
  /// Commands/s of such a run.
  double rate(u64 batches, bool writes);
  void check_wrong(u64 commands);

  bare_data data;
  u32 used;  ///< queues that a run drives

 private:
  executor& on_;
  buffer<u64> wrong_;
  bare_queues queues_;
  u32 units_;
};

}  // namespace penstock::bench
