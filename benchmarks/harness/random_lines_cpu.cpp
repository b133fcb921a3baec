#include "random_lines.hpp"

#include <algorithm>

namespace penstock::benchmarks {

// One long piece per thread: what is asked for early stays in flight from one line to the next.
void run_random_lines_cpu(executor& on, u64 items, random_lines const& body) {
  on.run(items, ceil_div(items, on.units()), [&](u64 first, u64 last) { body(lone_thread{}, grid_range{first, last, 1}); });
}

#if !defined(PENSTOCK_HAS_CUDA)
void run_random_lines_cuda(executor& on, u64 items, random_lines const& body, u64 most_groups) {
  launch<32>(on, items, body, {.groups = most_groups});  // refuses: built without nvcc
}
#endif

}  // namespace penstock::benchmarks
