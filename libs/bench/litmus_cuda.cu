#include "libs/bench/litmus_kernels.hpp"

namespace penstock::bench {

template <read_order Order>
kernel_facts race_refills_cuda(executor& on, race_refills<Order> const& body, u64 groups) {
  launch<32>(on, groups, body);
  return describe_kernel<32>(on, body);
}

template kernel_facts race_refills_cuda(executor&, race_refills<read_order::sound> const&, u64);
template kernel_facts race_refills_cuda(executor&, race_refills<read_order::address> const&, u64);
template kernel_facts race_refills_cuda(executor&, race_refills<read_order::data> const&, u64);

}  // namespace penstock::bench
