// `penstock bench latency`: what one warp waits for one line that is not in the cache, beside what the controller itself takes.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct latency_options {
  std::string executor = "auto";
  std::string controller = "model";                        ///< model or software
  std::string preset = "none";                             ///< of the modelled drive
  std::string media = "hbm";                               ///< likewise: hbm or host
  std::string rings = "hbm";                               ///< likewise; host: a drive that reaches host memory only
  std::vector<u32> lines = {512, 1024, 2048, 4096, 8192};  ///< bytes: powers of two, 512 to 65536
  directory_kind directory = directory_kind::direct;
  u32 lanes = 32;              ///< of the warp that take part in the first access
  u32 samples = 1000;          ///< in each repeat
  u64 cache_bytes = 0;         ///< 0: every line that is read finds a free frame
  u32 controller_threads = 0;  ///< software: 0: one per core, two left over
  u32 server_sms = 0;          ///< model: 0: a third. CPU: threads, 0: polled in place
  u32 repeats = 5;
  progress_fn progress;
  found_fn found;
};

/// Three measurements for each size of a line, in us, each beside the bare client's command of the same size: the first access
/// of a miss through `a[i]`, the whole line, and a read of the same bytes without a cache. Every byte is checked, and that
/// every line was brought in anew. Throws penstock::error: bad_input for options that cannot be; world where a read failed.
std::vector<measurement> run_latency_benchmark(latency_options const& options);

}  // namespace penstock::bench
