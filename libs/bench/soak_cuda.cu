#include "libs/bench/soak_kernels.hpp"

namespace penstock::bench {

kernel_facts run_soak_cuda(executor& on, soak_phase const& body) {
  launch<32>(on, body.data.groups, body);
  return describe_kernel<32>(on, body);
}

void move_queues_cuda(executor& on, move_queues const& body) { launch<32>(on, 1, body); }

}  // namespace penstock::bench
