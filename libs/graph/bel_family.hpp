// The files of EMOGI and BaM: X.bel.col with offsets (uint64, one more than vertices), X.bel.dst with neighbours (uint64), and
// where there are weights X.bel.val (int32); in each, two uint64 come first: how many items follow, and one without a meaning.
// Directed.
#pragma once

#include "libs/graph/binary_csr.hpp"

#include <optional>

namespace penstock::graph {

class bel_family final : public binary_csr {
 public:
  /// Reads headers and offsets and checks them against each other and against the sizes of the inputs. One wrong count is put
  /// right, with a remark(), since a known converter writes it: that of the edges at the head of the offsets.
  /// Errors: bad_input naming what disagrees; world when a file cannot be read.
  bel_family(byte_input offsets, byte_input targets, std::optional<byte_input> weights)
      : binary_csr(read_headers(std::move(offsets), std::move(targets), std::move(weights))) {}

 private:
  static csr_layout read_headers(byte_input offsets, byte_input targets, std::optional<byte_input> weights);
};

}  // namespace penstock::graph
