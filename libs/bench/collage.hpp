// `penstock bench collage`: the search of a collage's tiles (Shahar and Silberstein, SYSTOR 2016, section 6.1) by warps that
// read records from a file, beside the paper's other ways; and `penstock bench imagesearch` (6.2).
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct collage_options {
  std::string executor = "auto";
  std::string dataset;      ///< a folder of records and their index; empty: a synthetic one is made, and removed
  std::string folder;       ///< where it is made; empty: the system's for temporary files
  u64 records = 0;          ///< of a synthetic one; 0: 100,000, on a GPU a million
  std::vector<u32> widths;  ///< of pictures, 4 to 3; empty: 512, 1024, on a GPU also 2048 and 4096
  u64 cache_bytes = 0;      ///< 0: 256 MiB, on a GPU 2 GiB
  u32 host_threads = 0;     ///< of the baselines; 0: one per core
  u32 repeats = 3;
  std::vector<std::string> patterns;  ///< of cpu, level, cpu_gpu, hbm, large; empty: all that the executor has
  progress_fn progress;
  found_fn found;
};

/// Rates are blocks per millisecond, each run begins with an empty cache and a warm page cache. Throws penstock::error: world
/// where a baseline found other records.
std::vector<measurement> run_collage_benchmark(collage_options const& options);

struct image_search_options {
  std::string executor = "auto";
  std::string folder;  ///< where the sets are made, and removed
  u32 sets = 3;
  u64 images = 10000;  ///< of each, of 1024 numbers
  u32 queries = 560;
  u32 host_threads = 0;
  u32 repeats = 3;
  progress_fn progress;
  found_fn found;
};

/// imagesearch.warm (beside all sets in the executor's memory), imagesearch.page (lines of 64 KiB over 4 KiB, cold) and
/// imagesearch.cpu, in comparisons per second.
std::vector<measurement> run_image_search_benchmark(image_search_options const& options);

}  // namespace penstock::bench
