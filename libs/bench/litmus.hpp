// `penstock bench litmus`: whether validated reads let bytes of another fill through, in each order (core/read_order.hpp).
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct litmus_options {
  std::string executor = "auto";
  u64 rounds = 0;                   ///< refills of all lines together in one repeat; 0: 10^8 on CUDA, 10^5 on the CPU
  u32 groups = 0;                   ///< warps (CPU: items), each with a line; 0: as many as fit (CPU: one per thread)
  std::vector<std::string> orders;  ///< of sound, address, data. Empty: all
  u32 repeats = 3;
  progress_fn progress;
  found_fn found;
};

/// Refills/s for each order, with the reads that were accepted and rejected meanwhile. Throws penstock::error: bad_input for
/// options that cannot be; world when an order let a wrong piece through, saying how many of how many.
std::vector<measurement> run_litmus_benchmark(litmus_options const& options);

}  // namespace penstock::bench
