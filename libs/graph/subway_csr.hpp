// Subway's graphs, `.bcsr` and `.bwcsr`, all in uint32: vertices n, edges m, n offsets (m does not follow them), then m
// neighbours or m pairs of neighbour and weight. Directed.
#pragma once

#include "libs/graph/binary_csr.hpp"

namespace penstock::graph {

class subway_csr final : public binary_csr {
 public:
  /// Reads header and offsets and checks them against each other and against the size of the input.
  /// Errors: bad_input naming what disagrees; world when the file cannot be read.
  subway_csr(byte_input input, bool weighted) : binary_csr(read_header(std::move(input), weighted)) {}

 private:
  static csr_layout read_header(byte_input input, bool weighted);
};

}  // namespace penstock::graph
