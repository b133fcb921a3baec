#include "apps/bfs/bfs_level.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace penstock::apps {

template <class Id>
void launch_level_cuda(executor& on, bfs_level<Id> const& level, u64 most_groups) {
  launch<bfs_group_width>(on, level.runs(), level, most_groups);
}

template <class Id>
void sort_frontier_cuda(executor& on, bfs_data<Id>& data, u64 count, buffer<u8>& scratch) {
  const int bits = static_cast<int>(ceil_log2(data.vertices < 2 ? 2 : data.vertices));
  const auto stream = static_cast<cudaStream_t>(on.stream());
  auto sort = [&](void* memory, std::size_t& bytes) {
    const cudaError_t failed = cub::DeviceRadixSort::SortKeys(memory, bytes, data.next, data.frontier, count, 0, bits, stream);
    if (failed != cudaSuccess) throw error(error_kind::world, std::string("sort the frontier: ") + cudaGetErrorString(failed));
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  if (bytes > scratch.size()) scratch = {on.memory(), memory_kind::local, bytes};
  sort(scratch.data(), bytes);
  on.synchronize();
}

template void launch_level_cuda(executor&, bfs_level<std::int32_t> const&, u64);
template void launch_level_cuda(executor&, bfs_level<std::int64_t> const&, u64);
template void sort_frontier_cuda(executor&, bfs_data<std::int32_t>&, u64, buffer<u8>&);
template void sort_frontier_cuda(executor&, bfs_data<std::int64_t>&, u64, buffer<u8>&);

}  // namespace penstock::apps
