// The ways to go over an array (libs/regular) find each element once, whoever goes: by elements, by lines and by tiles.
#pragma once

#include "libs/regular/reduce_kernels.hpp"
#include "libs/regular/vectoradd_kernels.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

/// Runs a body whose workers have parts of the work: groups take the next worker until none is left.
template <class Body>
struct workers_body {
  Body body;
  u64 workers;
  u64* next;  ///< 0 at the start

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    PENSTOCK_CHECK(*c.report, workers != 0);
    for (;;) {
      const u64 worker = from_leader(g, is_leader(g) ? device_ref<u64>(*next).fetch_add(1, relaxed) : 0);
      if (worker >= workers) return;
      body(g, grid_range{worker, worker + 1, 1});
    }
  }
};

}  // namespace penstock::test
