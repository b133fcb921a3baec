#include "libs/bench/io_kernels.hpp"

#include <algorithm>

namespace penstock::bench {

kernel_facts run_commands_cuda(executor& on, io_job const& job, run_commands const& body) {
  launch<32>(on, ceil_div(body.io.commands, std::min(body.io.lanes, 32u)), body,
             {.groups = ceil_div(threads_of(on, job), 32), .units = job.units});
  return describe_kernel<32>(on, body);
}

void prepare_commands_cuda(executor& on, run_commands const& body) { prepare_launch<32>(on, body); }

}  // namespace penstock::bench
