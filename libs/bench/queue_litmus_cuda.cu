#include "libs/bench/queue_litmus_kernels.hpp"

namespace penstock::bench {

template <class Order, class FarOrder>
kernel_facts pass_messages_cuda(executor& on, pass_messages<Order, FarOrder> const& body, u64 groups) {
  launch<32>(on, groups, body);
  return describe_kernel<32>(on, body);
}

template kernel_facts pass_messages_cuda(executor&, pass_messages<sound_queue_order, sound_far_order> const&, u64);
template kernel_facts pass_messages_cuda(executor&, pass_messages<relaxed_submission, sound_far_order> const&, u64);
template kernel_facts pass_messages_cuda(executor&, pass_messages<relaxed_submission, relaxed_tail> const&, u64);
template kernel_facts pass_messages_cuda(executor&, pass_messages<relaxed_completion, sound_far_order> const&, u64);
template kernel_facts pass_messages_cuda(executor&, pass_messages<relaxed_completion, relaxed_posting> const&, u64);

}  // namespace penstock::bench
