// The width of the cells of a hash family that gives vectors as many candidates as are wanted.
#pragma once

#include "libs/lsh/lsh_layout.hpp"

#include <vector>

namespace penstock::lsh {

/// Dot products of a sample of the records, and the shifts in units of the width.
struct sampled_products {
  std::vector<float> products;     ///< [samples][projections]
  std::vector<float> unit_shifts;  ///< [projections], 0 to 1
  u64 samples = 0;
};

/// Candidates of a record on average, duplicates counted: its expectation from the sample for all `records`.
double expected_candidates(sampled_products const& sample, index_header const& shape, float width, u32 threads);

/// The width with which records have about `candidates`: more than fewer, at most 1.5 times as many where the data allow.
float choose_width(sampled_products const& sample, index_header const& shape, double candidates, u32 threads);

}  // namespace penstock::lsh
