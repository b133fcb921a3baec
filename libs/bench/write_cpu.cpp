#include "libs/bench/write_kernels.hpp"

namespace penstock::bench {

kernel_facts run_writes_cpu(executor& on, write_job const&, u64 lines, write_lines const& body) {
  launch<1>(on, lines, body);
  return {};
}

kernel_facts run_writes_cpu(executor& on, write_job const&, write_elements const& body) {
  launch<1>(on, body.count, body);
  return {};
}

#if !defined(PENSTOCK_HAS_CUDA)
kernel_facts run_writes_cuda(executor& on, write_job const& job, u64 lines, write_lines const& body) {
  return run_writes_cpu(on, job, lines, body);  // refuses
}
kernel_facts run_writes_cuda(executor& on, write_job const& job, write_elements const& body) {
  return run_writes_cpu(on, job, body);
}
#endif

}  // namespace penstock::bench
