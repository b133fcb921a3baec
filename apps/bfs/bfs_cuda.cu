// The walks of breadth-first search.
#include "apps/analytics/launch_on_gpu.cuh"
#include "apps/bfs/bfs_level.hpp"

namespace penstock::apps {

PENSTOCK_WALKS(std::int32_t, bfs_push<std::int32_t>)
PENSTOCK_WALKS(std::int64_t, bfs_push<std::int64_t>)
// As wide as graph_run::walk_narrow has it.
template void launch_on_gpu<8>(executor&, u64, vertex_walk<std::int32_t, bfs_pull<std::int32_t>> const&, u64);
template void launch_on_gpu<8>(executor&, u64, vertex_walk<std::int64_t, bfs_pull<std::int64_t>> const&, u64);

}  // namespace penstock::apps
