// The walks of connected components.
#include "libs/analytics/components_bodies.hpp"
#include "libs/analytics/launch_on_gpu.cuh"

namespace penstock::analytics {

PENSTOCK_WALKS(std::int32_t, merge_trees<std::int32_t>)
PENSTOCK_WALKS(std::int64_t, merge_trees<std::int64_t>)

}  // namespace penstock::analytics
