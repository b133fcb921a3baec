#include "libs/bench/bare_client.hpp"

namespace penstock::bench {

kernel_facts drive_queues_cuda(executor& on, u64 queues, u32 units, drive_queues const& body) {
  launch<32>(on, queues, body, {.units = units});
  return describe_kernel<32>(on, body);
}

kernel_facts time_commands_cuda(executor& on, time_commands const& body) {
  launch<32>(on, 1, body);
  return describe_kernel<32>(on, body);
}

void prepare_bare_cuda(executor& on, drive_queues const& rate, time_commands const& latency) {
  prepare_launch<32>(on, rate);
  prepare_launch<32>(on, latency);
}

}  // namespace penstock::bench
