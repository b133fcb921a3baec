// `penstock bench own`: reads through a cache whose replacement policy, or whose fills, are a program's own, beside the cache
// as it is.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct own_options {
  std::string executor = "auto";
  u64 bytes = 0;        ///< of the data, a power of two; 0: 4 GiB, CPU: 16 MiB
  u64 cache_bytes = 0;  ///< 0: an eighth
  u64 line_bytes = 4096;
  u64 reads = 0;                      ///< of each repeat; 0: 2^24, CPU: 2^17
  std::vector<std::string> patterns;  ///< of uniform, zipf, sequential; none: all
  u32 repeats = 5;
  progress_fn progress;
  found_fn found;
};

/// Two measurements for each pattern, in millions of elements of 8 bytes that were read in a second, each beside the stock
/// cache, in turns: `own.policy` is FIFO, a policy of the benchmark's; `own.fills` makes its lines by computing them, where the
/// others bring them from host memory. Every element is checked. Throws penstock::error: bad_input for options that cannot be;
/// system where a read failed.
std::vector<measurement> run_own_benchmark(own_options const& options);

}  // namespace penstock::bench
