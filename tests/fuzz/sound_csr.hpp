// What holds for each CSR that a reader took for good.
#pragma once

#include "libs/graph/binary_csr.hpp"

#include <cstdlib>

namespace penstock::graph {

/// Aborts unless there are as many edges as the header says, in the order of vertices, all in range.
inline void require_sound(binary_csr const& csr) {
  u64 count = 0, last = 0;
  for (u64 b = 0; b < csr.blocks(); ++b)
    csr.produce(b, [&](std::span<edge const> edges) {
      for (edge const& e : edges) {
        if (e.from >= csr.vertices() || e.to >= csr.vertices() || e.from < last) std::abort();
        last = e.from;
        ++count;
      }
    });
  if (count != csr.edges()) std::abort();
}

}  // namespace penstock::graph
