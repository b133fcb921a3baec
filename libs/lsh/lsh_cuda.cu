#include "libs/lsh/block_histograms.hpp"
#include "libs/lsh/find_within.hpp"
#include "libs/lsh/lsh_index.hpp"

namespace penstock::lsh {

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body) {
  launch<group_width>(on, items, body);
}

template void run_cuda(executor&, u64, open_named const&);
template void run_cuda(executor&, u64, project_vectors<file_records> const&);
template void run_cuda(executor&, u64, project_vectors<memory_records> const&);
template void run_cuda(executor&, u64, find_keys const&);
template void run_cuda(executor&, u64, touch_buckets<file_entries> const&);
template void run_cuda(executor&, u64, make_shortlists<file_entries> const&);
template void run_cuda(executor&, u64, compare_records<file_records> const&);
template void run_cuda(executor&, u64, compare_records<memory_records> const&);
template void run_cuda(executor&, u64, select_nearest const&);
template void run_cuda(executor&, u64, count_colours const&);
template void run_cuda(executor&, u64, match_records<file_range> const&);
template void run_cuda(executor&, u64, match_records<memory_range> const&);

}  // namespace penstock::lsh
