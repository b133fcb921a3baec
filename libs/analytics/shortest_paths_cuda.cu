// The walks of shortest paths.
#include "libs/analytics/launch_on_gpu.cuh"
#include "libs/analytics/shortest_paths_bodies.hpp"

namespace penstock::analytics {

#define PENSTOCK_PATHS(Id)                                            \
  PENSTOCK_WALKS(Id, relax_edges<Id, std::int32_t>)                   \
  PENSTOCK_WALKS(Id, relax_edges<Id, float>)                          \
  PENSTOCK_WALKS(Id, link_paths<Id, std::int32_t>)                    \
  PENSTOCK_WALKS(Id, link_paths<Id, float>)                           \
  PENSTOCK_KERNEL(tile_walk<Id, relax_edges<Id, std::int32_t, true>>) \
  PENSTOCK_KERNEL(tile_walk<Id, relax_edges<Id, float, true>>)
PENSTOCK_PATHS(std::int32_t)
PENSTOCK_PATHS(std::int64_t)

}  // namespace penstock::analytics
