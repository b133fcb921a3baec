// `penstock bench files`: calls of files by groups, beside the array over the same file and beside threads of the host.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct files_options {
  std::string executor = "auto";
  std::string folder;   ///< where the files are made, and removed; empty: the system's for temporary files
  u64 bytes = 0;        ///< of the large file; 0: 64 MiB, on a GPU 1 GiB
  u64 cache_bytes = 0;  ///< of the patterns with misses; 0: an eighth of the file
  u32 line_bytes = 4096;
  u32 files = 4000;       ///< small ones, that are opened
  u32 host_threads = 14;  ///< of the baselines: opens, batched copies (CUDA)
  u32 call_threads = 0;   ///< see folder_options
  u32 repeats = 5;
  std::vector<std::string>
      patterns;  ///< of read4k.warm, read4k.cold, read4k.skewed, open.known, open.new, roundtrip; empty: all
  progress_fn progress;
  found_fn found;
};

/// Throws penstock::error: bad_input for options that cannot be, world where a read gave other bytes than the file has.
std::vector<measurement> run_files_benchmark(files_options const& options);

}  // namespace penstock::bench
