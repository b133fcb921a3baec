// The kernels of all algorithms over graphs.
#include "apps/analytics/components_bodies.hpp"
#include "apps/analytics/pagerank_bodies.hpp"
#include "apps/analytics/shortest_paths_bodies.hpp"
#include "apps/bfs/bfs_level.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace penstock::apps {

template <class Body>
void launch_on_gpu(executor& on, u64 items, Body const& body, u64 most_groups) {
  launch<list_group_width>(on, items, body, {.groups = most_groups});
}

template <class Id>
void sort_vertices_on_gpu(executor& on, Id const* from, Id* sorted, u64 count, u64 vertices, buffer<u8>& scratch) {
  const int bits = static_cast<int>(ceil_log2(vertices < 2 ? 2 : vertices));
  const auto stream = static_cast<cudaStream_t>(on.stream());
  auto sort = [&](void* memory, std::size_t& bytes) {
    const cudaError_t failed = cub::DeviceRadixSort::SortKeys(memory, bytes, from, sorted, count, 0, bits, stream);
    if (failed != cudaSuccess) throw error(error_kind::world, std::string("sort the frontier: ") + cudaGetErrorString(failed));
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  if (bytes > scratch.size()) scratch = {on.memory(), memory_kind::local, bytes};
  sort(scratch.data(), bytes);
  on.synchronize();
}

#define PENSTOCK_KERNELS_OF_REAL(Real)                                        \
  template void launch_on_gpu(executor&, u64, share_ranks<Real> const&, u64); \
  template void launch_on_gpu(executor&, u64, take_ranks<Real> const&, u64);
PENSTOCK_KERNELS_OF_REAL(float)
PENSTOCK_KERNELS_OF_REAL(double)

#define PENSTOCK_KERNELS_OF_ID(Id)                                                        \
  template void launch_on_gpu(executor&, u64, bfs_level<Id> const&, u64);                 \
  template void launch_on_gpu(executor&, u64, plant_trees<Id> const&, u64);               \
  template void launch_on_gpu(executor&, u64, merge_trees<Id> const&, u64);               \
  template void launch_on_gpu(executor&, u64, flatten_trees<Id> const&, u64);             \
  template void launch_on_gpu(executor&, u64, pull_ranks<Id, float> const&, u64);         \
  template void launch_on_gpu(executor&, u64, pull_ranks<Id, double> const&, u64);        \
  template void launch_on_gpu(executor&, u64, push_ranks<Id, float> const&, u64);         \
  template void launch_on_gpu(executor&, u64, push_ranks<Id, double> const&, u64);        \
  template void launch_on_gpu(executor&, u64, relax_edges<Id, std::int32_t> const&, u64); \
  template void launch_on_gpu(executor&, u64, relax_edges<Id, float> const&, u64);        \
  template void launch_on_gpu(executor&, u64, read_pile<Id, u64> const&, u64);            \
  template void launch_on_gpu(executor&, u64, read_pile<Id, float> const&, u64);          \
  template void sort_vertices_on_gpu(executor&, Id const*, Id*, u64, u64, buffer<u8>&);
PENSTOCK_KERNELS_OF_ID(std::int32_t)
PENSTOCK_KERNELS_OF_ID(std::int64_t)

}  // namespace penstock::apps
