// Runs of `penstock bench io` that belong together: a sweep over one option, or the procedure of a figure or table of a paper.
#pragma once

#include "libs/bench/io.hpp"
#include "penstock/controller/drive_model.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct io_step {
  io_options options;
  std::string id;             ///< empty: of the options
  double expected = 0;        ///< what the paper has, in `unit`; 0: nothing
  std::string source;         ///< where it has it
  bool as_bandwidth = false;  ///< in GB/s, else in commands/s
};

/// The steps that the options ask for: one, a sweep's, or a procedure's, of which those are left whose drives, threads, block
/// and preset are as options.only has them. Throws penstock::error (bad_input) for a name or a value that there is not.
std::vector<io_step> plan_of(io_options const& options);

/// Commands/s that drives and link allow a run that keeps `in_flight` commands on their way: what the drives' figures and
/// Little's law say. 0: nothing limits it.
double drive_limit(io_options const& options, double in_flight, u64 commands);

/// Names for people.
std::string sweep_names();
std::string procedure_names();

}  // namespace penstock::bench
