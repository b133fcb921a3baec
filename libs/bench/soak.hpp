// `penstock bench soak`: reads, writes, atomics and prefetches over a drive that fails, delays, reorders and loses commands,
// with every byte checked and every fault accounted for.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct soak_options {
  std::string executor = "auto";
  u64 operations = 20'000'000;
  u64 phase = 0;  ///< operations between two flushes; 0: 25 thousand on the CPU, 10 million on CUDA
  u64 seed = 1;
  u32 threads = 0;      ///< 0: 8 on the CPU, 32 warps on each SM on CUDA
  u64 bytes = 0;        ///< of data; 0: 16 MiB on the CPU, 1 GiB on CUDA
  u64 cache_bytes = 0;  ///< 0: a sixteenth of the data
  u64 line_bytes = 512;
  directory_kind directory = directory_kind::automatic;
  u32 cold_ppm = 10'000;  ///< operations that go anywhere, per million; the others stay on lines that are here, mostly
  u32 error_ppm = 10'000, delay_ppm = 10'000, drop_ppm = 1'000, late_ppm = 500;  ///< commands, per million
  u64 timeout_ms = 20;                                                           ///< of a command
  u64 seconds = 0;  ///< that the run may take; 0: a minute, and one second for each 50 thousand operations
  progress_fn progress;
  found_fn found;
};

/// Operations/s, and what was injected and counted. Throws penstock::error: bad_input for options that cannot be; world for a
/// wrong byte, for counters that do not add up, and for a run that takes too long. One that does not end even then ends the
/// process, with a sentence on standard error.
std::vector<measurement> run_soak_benchmark(soak_options const& options);

}  // namespace penstock::bench
