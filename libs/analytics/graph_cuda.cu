// The kernels that look at vertices alone, and sorting.
#include "libs/analytics/components_bodies.hpp"
#include "libs/analytics/launch_on_gpu.cuh"
#include "libs/analytics/pagerank_bodies.hpp"
#include "libs/analytics/shortest_paths_bodies.hpp"
#include "libs/analytics/tile_bodies.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

namespace penstock::analytics {
namespace {

/// call(memory, bytes) twice, as CUB wants it: to ask for the bytes, and to work.
template <class Call>
void with_scratch(executor& on, buffer<u8>& scratch, char const* what, Call const& call) {
  const auto check = [&](cudaError_t failed) {
    if (failed != cudaSuccess) throw error(error_kind::world, std::string(what) + ": " + cudaGetErrorString(failed));
  };
  std::size_t bytes = 0;
  check(call(nullptr, bytes));
  if (bytes > scratch.size()) scratch = {on.memory(), memory_kind::local, bytes};
  check(call(scratch.data(), bytes));
}

}  // namespace

template <class Id>
void sort_on_gpu(executor& on, Id const* from, Id* sorted, u64 count, u64 limit, buffer<u8>& scratch) {
  const int bits = static_cast<int>(ceil_log2(limit < 2 ? 2 : limit));
  const auto stream = static_cast<cudaStream_t>(on.stream());
  with_scratch(on, scratch, "sort", [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, from, sorted, count, 0, bits, stream);
  });
  on.synchronize();
}

template <class Id>
u64 unique_on_gpu(executor& on, Id const* sorted, Id* unique, u64 count, buffer<u8>& scratch, u64* left) {
  const auto stream = static_cast<cudaStream_t>(on.stream());
  with_scratch(on, scratch, "make unique", [&](void* memory, std::size_t& bytes) {
    return cub::DeviceSelect::Unique(memory, bytes, sorted, unique, left, static_cast<std::int64_t>(count), stream);
  });
  on.synchronize();
  u64 found = 0;
  on.memory().read(&found, left, sizeof found);
  return found;
}

#define PENSTOCK_KERNELS_OF_REAL(Real) \
  PENSTOCK_KERNEL(share_ranks<Real>)   \
  PENSTOCK_KERNEL(take_ranks<Real>)
PENSTOCK_KERNELS_OF_REAL(float)
PENSTOCK_KERNELS_OF_REAL(double)

#define PENSTOCK_KERNELS_OF_ID(Id)                                             \
  PENSTOCK_KERNEL(plant_trees<Id>)                                             \
  PENSTOCK_KERNEL(merge_neighbours<Id>)                                        \
  PENSTOCK_KERNEL(sample_parents<Id>)                                          \
  PENSTOCK_KERNEL(flatten_trees<Id>)                                           \
  PENSTOCK_KERNEL(take_frontier<Id, u64>)                                      \
  PENSTOCK_KERNEL(take_frontier<Id, double>)                                   \
  PENSTOCK_KERNEL(read_pile<Id, u64>)                                          \
  PENSTOCK_KERNEL(read_pile<Id, double>)                                       \
  PENSTOCK_KERNEL(count_unlinked<Id, u64>)                                     \
  PENSTOCK_KERNEL(count_unlinked<Id, double>)                                  \
  PENSTOCK_KERNEL(list_first_vertices<Id>)                                     \
  PENSTOCK_KERNEL(list_tiles<Id>)                                              \
  PENSTOCK_KERNEL(forget_tiles<Id>)                                            \
  PENSTOCK_KERNEL(count_list_edges<Id>)                                        \
  template void sort_on_gpu(executor&, Id const*, Id*, u64, u64, buffer<u8>&); \
  template u64 unique_on_gpu(executor&, Id const*, Id*, u64, buffer<u8>&, u64*);
PENSTOCK_KERNELS_OF_ID(std::int32_t)
PENSTOCK_KERNELS_OF_ID(std::int64_t)

}  // namespace penstock::analytics
