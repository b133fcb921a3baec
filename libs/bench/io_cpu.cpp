#include "libs/bench/io_kernels.hpp"

#include <algorithm>

namespace penstock::bench {

// Threads are numbered by their first item, so each has one piece of the work.
kernel_facts run_commands_cpu(executor& on, io_job const& job, run_commands const& body) {
  const u64 threads = threads_of(on, job);
  on.run(threads, 1, [&](u64 first, u64) { body(lone_thread{}, grid_range{first, body.io.commands, threads}); });
  return {};
}

u64 threads_of(executor& on, io_job const& job) {
  if (on.kind() == executor_kind::cpu) return job.threads != 0 ? job.threads : on.units();
  const u64 most = u64{job.units != 0 ? job.units : on.units()} * cuda_blocks_per_unit * cuda_block_threads;
  if (job.threads <= 32) return job.threads != 0 ? job.threads : most;
  return std::min<u64>(round_up(job.threads, 32), most);  // whole warps run
}

#if !defined(PENSTOCK_HAS_CUDA)
kernel_facts run_commands_cuda(executor& on, io_job const& job, run_commands const& body) {
  launch<32>(on, body.io.commands, body, {.units = job.units});  // refuses: built without nvcc
  return {};
}
void prepare_commands_cuda(executor& on, run_commands const& body) { prepare_launch<32>(on, body); }
#endif

}  // namespace penstock::bench
