#include "libs/bench/write_kernels.hpp"

namespace penstock::bench {
namespace {

template <class Body>
kernel_facts run(executor& on, write_job const& job, u64 items, Body const& body) {
  if (job.only_prepares) {
    prepare_launch<32>(on, body);
  } else {
    launch<32>(on, items, body, {.groups = job.groups, .units = job.units});
  }
  return describe_kernel<32>(on, body);
}

}  // namespace

kernel_facts run_writes_cuda(executor& on, write_job const& job, u64 lines, write_lines const& body) {
  return run(on, job, lines, body);
}

kernel_facts run_writes_cuda(executor& on, write_job const& job, write_elements const& body) {
  return run(on, job, ceil_div(body.count, 32), body);
}

}  // namespace penstock::bench
