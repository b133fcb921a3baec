// `penstock bench model`: what the modelled drives give to a client that does the least (libs/bench/bare_client.hpp): their own
// ceiling and their own latency, so that nobody mistakes them for those of the queues above.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct model_bench_options {
  std::string executor = "auto";
  std::string preset = "none";  ///< of the drive: see drive_preset
  std::string media = "hbm";    ///< hbm or host: where the drive's bytes lie
  std::string rings = "hbm";    ///< hbm or host: where the queues lie
  // One measurement for each combination.
  std::vector<u32> blocks = {512, 4096};  ///< bytes of a command: powers of two, 512 to 65536
  std::vector<u32> queues;                ///< empty: 1, and as many as saturate; powers of two for `depths`
  std::vector<u32> server_sms = {0};      ///< that serve; 0: a third. CPU: threads, 0: polled in place
  std::vector<u32> servers = {4};         ///< warps (threads) that may look after one queue
  std::vector<std::string> kinds;         ///< of: read, write, read-latency, write-latency. Empty: all
  std::vector<u32> depths;                ///< commands kept in flight: instead of the above a curve over them, spread over
                                          ///< `queues` (empty: 16, on the CPU 1), or one queue each where they are fewer
  u32 queue_depth = 1024;                 ///< entries of a ring; a power of two
  u32 batch = 0;                          ///< commands for one doorbell; a power of two; 0: chosen
  u64 commands = 0;                       ///< of one run; 0: chosen
  u64 samples = 1000;                     ///< of a latency, in each repeat
  u64 drive_mib = 256;                    ///< a power of two
  u32 sms = 0;                            ///< that issue; 0: what the drives leave
  u32 repeats = 5;
  progress_fn progress;
  found_fn found;
};

/// Rates in commands/s and latencies in us; every command's status and first word checked, and every word in one run more
/// (every word of every command of a latency). Throws penstock::error: bad_input for options that cannot be; world where a
/// command failed or brought wrong bytes.
std::vector<measurement> run_model_benchmark(model_bench_options const& options);

}  // namespace penstock::bench
