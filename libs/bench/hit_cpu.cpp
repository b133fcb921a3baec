#include "libs/bench/hit_dispatch.hpp"

namespace penstock::bench {

kernel_facts run_hit_cpu(executor& on, hit_job const& job, hit_data const& data) { return run_hit(on, job, data); }
void list_frames_cpu(executor& on, u64 lines, list_frames const& body) { launch<1>(on, lines, body); }

#if !defined(PENSTOCK_HAS_CUDA)
kernel_facts run_hit_cuda(executor& on, hit_job const& job, hit_data const& data) { return run_hit(on, job, data); }
void list_frames_cuda(executor& on, u64 lines, list_frames const& body) { launch<1>(on, lines, body); }
#endif

}  // namespace penstock::bench
