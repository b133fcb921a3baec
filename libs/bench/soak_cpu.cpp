#include "libs/bench/soak_kernels.hpp"

namespace penstock::bench {

kernel_facts run_soak_cpu(executor& on, soak_phase const& body) {
  launch<1>(on, body.data.groups, body);
  return {};
}
void move_queues_cpu(executor& on, move_queues const& body) { launch<1>(on, 1, body); }

#if !defined(PENSTOCK_HAS_CUDA)
kernel_facts run_soak_cuda(executor& on, soak_phase const& body) { return run_soak_cpu(on, body); }  // refuses
void move_queues_cuda(executor& on, move_queues const& body) { move_queues_cpu(on, body); }
#endif

}  // namespace penstock::bench
