// `penstock bench hit`: what an access costs when its line is in the cache, beside the same access to a plain array.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct hit_options {
  std::string executor = "auto";
  u32 sm_share = 0;  ///< see executor_limits: SMs or threads that it is bounded to; 0: all
  u64 bytes = 0;     ///< resident; a power of two; 0: 8 GiB on CUDA, 256 MiB on the CPU
  u64 line_bytes = 4096;
  directory_kind directory = directory_kind::direct;
  u64 step = 16;                          ///< of the patterns and orders strided and coarsened
  line_order order = line_order::random;  ///< of whole lines
  u32 repeats = 5;
  u32 sms = 0;                   ///< 0: all
  bool directory_in_l2 = false;  ///< asked for: see cache_options
  ablations without{};
  /// Of: line, linear, random, hot16, strided, lines, coarsened. Empty: all.
  std::vector<std::string> patterns;
  progress_fn progress;
  found_fn found;
};

/// One measurement per pattern and way to read, each against the plain array in the same run; every element is checked.
/// Throws penstock::error: bad_input for options that cannot be; world where something was read wrong or was not a hit.
std::vector<measurement> run_hit_benchmark(hit_options const& options);

}  // namespace penstock::bench
