// Builds the index of a folder of records (lsh_layout.hpp).
#pragma once

#include "libs/lsh/lsh_index.hpp"

#include <string>

namespace penstock::lsh {

struct build_options {
  std::string executor = "auto";
  u32 dimensions = 0;
  u64 record_bytes = 0;  ///< 0: of the floats alone, rounded up to a multiple of 16
  u32 tables = 32;
  u32 projections_per_table = 8;
  float width = 0;          ///< of a cell; 0: chosen for `candidates`
  double candidates = 256;  ///< that a vector of the set is to have on average, before duplicates
  u64 seed = 1;
  u64 memory_bytes = u64{4} << 30;  ///< of the host, for tables that are built at once
  u32 threads = 0;                  ///< of the host, and of the CPU executor; 0: one a core
  progress_fn progress;
};

/// Hashes all records of `folder`/records and writes `folder`/lsh.index, which appears when it is complete.
/// Throws penstock::error: bad_input for options that cannot be, or records that are none; world for what cannot be read or
/// written.
index_header build_index(std::string const& folder, build_options const& options);

}  // namespace penstock::lsh
