// `penstock bench litmus --test queue`: messages to controllers and back, through queue pairs, with their orders and without
// (core/queue_order.hpp).
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct queue_litmus_options {
  std::string executor = "auto";
  u64 rounds = 0;   ///< commands in one repeat, each a message to the controller and one back; 0: 10^8 on CUDA, 10^5 on the CPU
  u32 queues = 0;   ///< each with a controller of its own; 0: four to an SM (CPU: 1)
  u32 sharers = 2;  ///< warps (CPU: threads) that submit to one queue in the order `sound`; 1 in all others
  u32 queue_depth = 64;
  std::string rings = "hbm";        ///< hbm or host: where rings and doorbells lie
  std::string data = "hbm";         ///< likewise, what commands name
  std::vector<std::string> orders;  ///< of sound, relaxed, unordered. Empty: all
  u64 spoiled = 0;                  ///< rounds of each thread whose data nobody writes: the test of the test
  u32 repeats = 1;
  progress_fn progress;
  found_fn found;
};

/// Messages/s each way. `sound`: litmus.queue_submission and litmus.queue_completion, of one run. `relaxed` takes the queue
/// pair's own orders from one direction, `unordered` the controller's, too: a run for each direction, which tells how many
/// wrong messages it saw; where none, and all were answered, that it is insensitive. Throws penstock::error: bad_input for
/// options that cannot be; world when the order `sound` let a message of another round through, or a command was not answered,
/// saying how many of how many.
std::vector<measurement> run_queue_litmus(queue_litmus_options const& options);

}  // namespace penstock::bench
