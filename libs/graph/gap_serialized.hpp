// GAP's serialized graphs, `.sg` and `.wsg`: a CSR after a header of 17 bytes, so nothing in it is aligned. A directed graph
// carries its inverse after itself, which is not read; an undirected one has both directions already.
#pragma once

#include "libs/graph/binary_csr.hpp"

namespace penstock::graph {

class gap_serialized final : public binary_csr {
 public:
  /// Reads header and offsets and checks them against each other and against the size of the input.
  /// Errors: bad_input naming what disagrees; world when the file cannot be read.
  gap_serialized(byte_input input, bool weighted) : binary_csr(read_header(std::move(input), weighted)) {}

 private:
  static csr_layout read_header(byte_input input, bool weighted);
};

}  // namespace penstock::graph
