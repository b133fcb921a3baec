#include "libs/bench/cliffs_kernels.hpp"

namespace penstock::bench {

void run_cliff_cuda(executor& on, cliff_access access, cliff_job const& job) { run_cliff(on, access, job, 32); }

}  // namespace penstock::bench
