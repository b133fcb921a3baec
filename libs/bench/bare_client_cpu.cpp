#include "libs/bench/bare_client.hpp"

namespace penstock::bench {

kernel_facts drive_queues_cpu(executor& on, u64 queues, u32 units, drive_queues const& body) {
  launch<1>(on, queues, body, {.units = units});
  return {};
}
kernel_facts time_commands_cpu(executor& on, time_commands const& body) {
  launch<1>(on, 1, body);
  return {};
}

#if !defined(PENSTOCK_HAS_CUDA)
kernel_facts drive_queues_cuda(executor& on, u64 queues, u32 units, drive_queues const& body) {
  return drive_queues_cpu(on, queues, units, body);  // refuses: built without nvcc
}
kernel_facts time_commands_cuda(executor& on, time_commands const& body) { return time_commands_cpu(on, body); }
void prepare_bare_cuda(executor&, drive_queues const&, time_commands const&) {}
#endif

}  // namespace penstock::bench
