#include "libs/sampling/sampling_launches.hpp"
#include "libs/sampling/score_bodies.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <string>

namespace penstock::sampling {
namespace {

void check(cudaError_t result, char const* what) {
  if (result != cudaSuccess) {
    throw error(error_kind::world, std::string("sample neighbours: ") + what + ": " + cudaGetErrorString(result));
  }
}

/// Calls with(scratch, bytes), first to ask for the bytes.
template <class With>
void with_room(step_place const& to, scan_room& room, With const& with) {
  const gpu_scope here(to.on->gpu());
  auto* const stream = static_cast<cudaStream_t>(to.stream);
  std::size_t bytes = 0;
  check(with(nullptr, bytes, stream), "there is no room to sort them in");
  if (bytes > room.bytes.size()) {
    check(cudaStreamSynchronize(stream), "its results are lost");  // which may use what is replaced
    room.bytes = {to.on->memory(), memory_kind::local, bytes};
  }
  check(with(room.bytes.data(), bytes, stream), "they cannot be sorted");
}

template <class T>
void scan_numbers(step_place const& to, T* numbers, u64 count, scan_room& room) {
  with_room(to, room, [&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, numbers, numbers, static_cast<std::int64_t>(count), stream);
  });
}

}  // namespace

template <class Body>
void run_cuda(step_place const& to, u64 items, Body const& body) {
  launch_on<32>(to.stream, *to.on, items, body, {0, to.units});
}

void scan_cuda(step_place const& to, u64* numbers, u64 count, scan_room& room) { scan_numbers(to, numbers, count, room); }
void scan_cuda(step_place const& to, u32* numbers, u64 count, scan_room& room) { scan_numbers(to, numbers, count, room); }

u32 const* sort_cuda(step_place const& to, u64* keys, u64* other_keys, u32* order, u32* other_order, u64 count, u32 begin,
                     u32 end, scan_room& room) {
  cub::DoubleBuffer<u64> sorted_keys(keys, other_keys);
  cub::DoubleBuffer<u32> sorted(order, other_order);
  with_room(to, room, [&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, sorted_keys, sorted, static_cast<std::int64_t>(count),
                                           static_cast<int>(begin), static_cast<int>(end), stream);
  });
  return sorted.Current();
}

void finish_cuda(step_place const& to) {
  const gpu_scope here(to.on->gpu());
  check(cudaStreamSynchronize(static_cast<cudaStream_t>(to.stream)), "its results are lost");
}

template void run_cuda(step_place const&, u64, take_seeds const&);
template void run_cuda(step_place const&, u64, count_lists const&);
template void run_cuda(step_place const&, u64, count_eligible const&);
template void run_cuda(step_place const&, u64, choose_in_lane const&);
template void run_cuda(step_place const&, u64, choose_scanned const&);
template void run_cuda(step_place const&, u64, list_positions const&);
template void run_cuda(step_place const&, u64, look_up const&);
template void run_cuda(step_place const&, u64, mark_new const&);
template void run_cuda(step_place const&, u64, number_new const&);
template void run_cuda(step_place const&, u64, finish_edges const&);
template void run_cuda(step_place const&, u64, reset_words const&);
template void run_cuda(step_place const&, u64, copy_numbers<u64> const&);
template void run_cuda(step_place const&, u64, copy_numbers<u32> const&);
template void run_cuda(step_place const&, u64, take_nodes const&);
template void run_cuda(step_place const&, u64, take_edges const&);
template void run_cuda(step_place const&, u64, clear_table const&);
template void run_cuda(step_place const&, u64, fill_table const&);
template void run_cuda(step_place const&, u64, induced_edges const&);
template void run_cuda(step_place const&, u64, push_scores const&);
template void run_cuda(step_place const&, u64, settle_scores const&);

}  // namespace penstock::sampling
