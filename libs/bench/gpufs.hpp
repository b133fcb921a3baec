// `penstock bench gpufs`: GPUfs (SYSTOR 2016) before and after each of its optimizations, beside files of Penstock.
#pragma once

#include "libs/bench/gpufs_options.hpp"
#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct gpufs_bench_options {
  std::string executor = "auto";
  std::string folder;      ///< where the files are made, and removed; empty: the system's for temporary files
  u64 bytes = 0;           ///< of the file, rounded up to a power of two; 0: 64 MiB, on a GPU 256 MiB
  u64 cache_bytes = 0;     ///< of the patterns that evict; 0: an eighth of the file
  u32 page_bytes = 4096;   ///< of GPUfs, and of Penstock's lines
  u32 threads = 0;         ///< CPU; 0: all cores
  u32 groups = 0;          ///< GPU: blocks; as many warps as they have at the level of warps; 0: two blocks a multiprocessor
  u32 workers = 0;         ///< host threads that read; 0: the paper's number
  std::string order = "";  ///< random, skewed, zipf or linear; empty: skewed where pages are evicted, else random
  u32 repeats = 5;
  std::vector<std::string> patterns;  ///< of gpufs_patterns(); empty: all that the executor has
  progress_fn progress;
  found_fn found;
};

std::vector<std::string> const& gpufs_patterns();

/// Throws penstock::error: bad_input for options that cannot be, world where a read failed or gave other bytes than the file
/// has.
std::vector<measurement> run_gpufs_benchmark(gpufs_bench_options const& options);

}  // namespace penstock::bench
