#include "libs/bench/latency_kernels.hpp"

namespace penstock::bench {

kernel_facts time_misses_cpu(executor& on, time_misses const& body) {
  launch<1>(on, 1, body);
  return {};
}
kernel_facts time_blocks_cpu(executor& on, time_blocks const& body) {
  launch<1>(on, 1, body);
  return {};
}

#if !defined(PENSTOCK_HAS_CUDA)
kernel_facts time_misses_cuda(executor& on, time_misses const& body) { return time_misses_cpu(on, body); }  // refuses
kernel_facts time_blocks_cuda(executor& on, time_blocks const& body) { return time_blocks_cpu(on, body); }
void prepare_latency_cuda(executor&, time_misses const&, time_blocks const&) {}
#endif

}  // namespace penstock::bench
