// The walks of breadth-first search.
#include "libs/analytics/bfs_level.hpp"
#include "libs/analytics/launch_on_gpu.cuh"

namespace penstock::analytics {

PENSTOCK_WALKS(std::int32_t, bfs_push<std::int32_t>)
PENSTOCK_WALKS(std::int64_t, bfs_push<std::int64_t>)
PENSTOCK_KERNEL(tile_walk<std::int32_t, bfs_push<std::int32_t, true>>)
PENSTOCK_KERNEL(tile_walk<std::int64_t, bfs_push<std::int64_t, true>>)
PENSTOCK_KERNEL(list_level<std::int32_t>)
PENSTOCK_KERNEL(list_level<std::int64_t>)
// As wide as edge_walker::walk_narrow has it.
PENSTOCK_KERNEL_OF_WIDTH(8, vertex_walk<std::int32_t, bfs_pull<std::int32_t>>)
PENSTOCK_KERNEL_OF_WIDTH(8, vertex_walk<std::int64_t, bfs_pull<std::int64_t>>)

}  // namespace penstock::analytics
