#include "libs/bench/cliffs_kernels.hpp"

namespace penstock::bench {

void run_cliff_cpu(executor& on, cliff_access access, cliff_job const& job) { run_cliff(on, access, job, 1); }

#if !defined(PENSTOCK_HAS_CUDA)
void run_cliff_cuda(executor& on, cliff_access access, cliff_job const& job) { run_cliff(on, access, job, 32); }
#endif

}  // namespace penstock::bench
