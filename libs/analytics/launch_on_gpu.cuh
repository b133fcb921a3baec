// The other half of start.hpp, for the files that nvcc compiles.
#pragma once

#include "libs/analytics/edge_walks.hpp"
#include "libs/analytics/start.hpp"
#include "libs/analytics/subgraph_copies.hpp"

namespace penstock::analytics {

template <u32 Width, class Body>
void launch_on_gpu(executor& on, u64 items, Body const& body, launch_limits limits) {
  limits.groups *= list_group_width / Width;
  launch_on<Width>(on.stream(), on, items, body, limits);
}

template <u32 Width, class Body>
void prepare_on_gpu(executor& on, Body const& body) {
  prepare_launch<Width>(on, body);
}

#define PENSTOCK_KERNEL_OF_WIDTH(Width, ...)                                             \
  template void launch_on_gpu<Width>(executor&, u64, __VA_ARGS__ const&, launch_limits); \
  template void prepare_on_gpu<Width>(executor&, __VA_ARGS__ const&);
#define PENSTOCK_KERNEL(...) PENSTOCK_KERNEL_OF_WIDTH(list_group_width, __VA_ARGS__)

/// The walks of a visitor: groups per vertex, threads per vertex, groups per tile, and those per tile of copies.
#define PENSTOCK_WALKS(Id, ...)                             \
  PENSTOCK_KERNEL(vertex_walk<Id, __VA_ARGS__>)             \
  PENSTOCK_KERNEL_OF_WIDTH(1, vertex_walk<Id, __VA_ARGS__>) \
  PENSTOCK_KERNEL(tile_walk<Id, __VA_ARGS__>)               \
  PENSTOCK_KERNEL(tile_walk<Id, visitor_of_copies<Id, __VA_ARGS__>>)

}  // namespace penstock::analytics
