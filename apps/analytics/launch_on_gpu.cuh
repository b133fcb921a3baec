// The other half of start.hpp, for the files that nvcc compiles.
#pragma once

#include "apps/analytics/edge_walks.hpp"
#include "apps/analytics/start.hpp"

namespace penstock::apps {

template <u32 Width, class Body>
void launch_on_gpu(executor& on, u64 items, Body const& body, u64 most_groups) {
  launch<Width>(on, items, body, {.groups = most_groups * (list_group_width / Width)});
}

#define PENSTOCK_KERNEL(...) template void launch_on_gpu<list_group_width>(executor&, u64, __VA_ARGS__ const&, u64);

/// The walks of a visitor: groups per vertex, threads per vertex, groups per tile.
#define PENSTOCK_WALKS(Id, ...)                                                                            \
  template void launch_on_gpu<list_group_width>(executor&, u64, vertex_walk<Id, __VA_ARGS__> const&, u64); \
  template void launch_on_gpu<1>(executor&, u64, vertex_walk<Id, __VA_ARGS__> const&, u64);                \
  template void launch_on_gpu<list_group_width>(executor&, u64, tile_walk<Id, __VA_ARGS__> const&, u64);

}  // namespace penstock::apps
