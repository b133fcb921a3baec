// The walks of PageRank by weights.
#include "libs/analytics/launch_on_gpu.cuh"
#include "libs/analytics/pagerank_bodies.hpp"

namespace penstock::analytics {

#define PENSTOCK_RANKS(Id)                     \
  PENSTOCK_WALKS(Id, pull_ranks<float, true>)  \
  PENSTOCK_WALKS(Id, pull_ranks<double, true>) \
  PENSTOCK_WALKS(Id, push_ranks<float, true>)  \
  PENSTOCK_WALKS(Id, push_ranks<double, true>)
PENSTOCK_RANKS(std::int32_t)
PENSTOCK_RANKS(std::int64_t)

}  // namespace penstock::analytics
