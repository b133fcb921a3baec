// `penstock bench miss`: reads of lines that are not in the cache.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct miss_options {
  std::string executor = "auto";
  u32 sm_share = 0;                  ///< see executor_limits: SMs or threads that it is bounded to; 0: all
  std::string controller = "model";  ///< model or software
  std::string media = "host";        ///< of the modelled drive: hbm or host
  std::string preset = "none";       ///< likewise
  u64 bytes = 0;                     ///< of data, a power of two; 0: 4 GiB on CUDA, 64 MiB on the CPU
  u64 cache_bytes = 0;               ///< 0: a sixteenth of the data
  u64 line_bytes = 4096;
  directory_kind directory = directory_kind::direct;
  u32 queues = 128;
  u32 queue_depth = 1024;
  u32 controller_threads = 0;  ///< software: 0: one per core, two left over
  u32 server_sms = 0;          ///< model: 0: a third
  int server_device = -1;      ///< model, CUDA: GPU that serves, with its media; -1: that of those who ask
  u32 sms = 0;                 ///< that ask; 0: all that are left
  u32 service_sms = 0;         ///< of a queue_service (CPU: threads); 0: none, who waits completes
  u64 threads = 0;             ///< that ask; 0: as many as fit and as the cache has frames for
  u32 repeats = 3;
  u64 read_ahead_bytes = cache_options{}.read_ahead_bytes;  ///< see there
  ablations without{};
  line_order order = line_order::random;  ///< of whole lines
  u64 step = 16;                          ///< of strided and coarsened, orders and patterns
  u32 width = 32;                         ///< lanes that walk along a line: 32, 16 or 8
  /// Of: line (`width` lanes walk along a line by a[i]), touch (one element of each line), and a thread per element: linear,
  /// strided, random, lines, coarsened. Empty: line, linear, touch.
  std::vector<std::string> patterns;
  progress_fn progress;
  found_fn found;
};

/// Bytes that came in per second, beside threads that read the same media in place (modelled drives in host memory). Every
/// element that is read is checked. Throws penstock::error: bad_input for options that cannot be; world where a read failed.
std::vector<measurement> run_miss_benchmark(miss_options const& options);

}  // namespace penstock::bench
