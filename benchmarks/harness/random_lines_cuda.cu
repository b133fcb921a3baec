#include "random_lines.hpp"

namespace penstock::benchmarks {

void run_random_lines_cuda(executor& on, u64 items, random_lines const& body, u64 most_groups) {
  launch<32>(on, items, body, {.groups = most_groups});
}

}  // namespace penstock::benchmarks
