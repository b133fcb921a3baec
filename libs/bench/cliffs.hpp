// `penstock bench cliffs`: looks for configurations that are far slower than what bounds them.
#pragma once

#include "libs/bench/measurement.hpp"
#include "penstock/host/progress.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct cliffs_options {
  std::string executor = "auto";
  u64 configs = 40;
  u64 seed = 1;          ///< of the configurations: number k is drawn by seed + k
  u64 bytes = 0;         ///< of data; 0: 64 MiB on the CPU, 1 GiB on CUDA
  u64 shown = 20;        ///< of the worst, that are results
  std::string folder{};  ///< for a file of the data; empty: TMPDIR, or /tmp
  progress_fn progress;
  found_fn found;  ///< called with every configuration, as it is measured
};

/// Results: `cliffs.worst`, `.p10` and `.median` of all rates over their bounds, then the worst configurations, worst first. Of
/// each: its rate over the rate that bounds it, where fills of an LRU cache of the same size come at the rate of fills that was
/// measured for its source and lines, hits at the rate of such hits, and on a GPU a group goes on no sooner than its fills have
/// come and its hits are read, one step after the other, as one group that is alone does.
/// Throws penstock::error: bad_input for options that cannot be; world for a wrong sum.
std::vector<measurement> run_cliffs_benchmark(cliffs_options const& options);

}  // namespace penstock::bench
