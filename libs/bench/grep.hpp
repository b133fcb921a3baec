// `penstock bench grep`: the search of a tree by the executor's threads, beside threads of the host that map the same files.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct grep_options {
  std::string executor = "auto";
  std::string folder = "/usr";
  std::string pattern = "printf";
  u64 cache_bytes = 0;   ///< 0: as `penstock grep`
  u64 line_bytes = 0;    ///< likewise
  u32 host_threads = 0;  ///< 0: one per core
  u32 repeats = 3;
  progress_fn progress;
  found_fn found;
};

/// One measurement, `grep`, in MB/s of text files, after both searches ran once (page cache and the folder's names are warm).
/// Throws penstock::error: bad_input as files::search_tree, and for 0 repeats; world where the two found other lines.
std::vector<measurement> run_grep_benchmark(grep_options const& options);

}  // namespace penstock::bench
