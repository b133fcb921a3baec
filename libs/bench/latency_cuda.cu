#include "libs/bench/latency_kernels.hpp"

namespace penstock::bench {

kernel_facts time_misses_cuda(executor& on, time_misses const& body) {
  launch<32>(on, 1, body);
  return describe_kernel<32>(on, body);
}

kernel_facts time_blocks_cuda(executor& on, time_blocks const& body) {
  launch<32>(on, 1, body);
  return describe_kernel<32>(on, body);
}

void prepare_latency_cuda(executor& on, time_misses const& misses, time_blocks const& blocks) {
  prepare_launch<32>(on, misses);
  prepare_launch<32>(on, blocks);
}

}  // namespace penstock::bench
