// The models of thread_group that exist on a GPU.
#include "device/group_test_body.hpp"

#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(16);
const u32 largest_block = std::max(128u, 1024 / cuda_test_scale());

PENSTOCK_CUDA_TEST(six_operations_agree_in_lone_threads_and_parts_of_warps) {
  const shared_memory<u64> slots(threads_of_warps(warps));
  run_warps_on_device(group_properties{slots.data()}, report, warps);
}

PENSTOCK_CUDA_TEST(six_operations_agree_in_one_warp_alone) {
  const shared_memory<u64> slots(32);
  launch({1, 32}, run_parts_kernel<group_properties, 32>, group_properties{slots.data()}, &report, cuda_test_seed());
  launch({1, 32}, run_parts_kernel<group_properties, 1>, group_properties{slots.data()}, &report, cuda_test_seed());
}

PENSTOCK_CUDA_TEST(six_operations_agree_in_blocks) {
  constexpr u32 blocks = 3;
  const shared_memory<u64> slots(blocks * 1024);
  for (u32 threads : {32u, 64u, 256u, largest_block}) {
    run_blocks_on_device(group_properties{slots.data()}, report, blocks, threads);
  }
}

PENSTOCK_CUDA_TEST(six_operations_agree_in_blocks_whose_last_warp_is_not_full) {
  const shared_memory<u64> slots(2 * 1000);
  for (u32 threads : {1u, 33u, 95u, largest_block - 24}) {
    run_blocks_on_device(group_properties{slots.data()}, report, 2, threads);
  }
}

__global__ void count_block_ranks(check_report* report, u32* seen) {
  __shared__ block_scratch scratch;
  const block g(scratch);
  PENSTOCK_CHECK_EQ(*report, blockDim.x * blockDim.y * blockDim.z, size(g));
  device_ref<u32>(seen[g.rank()]).fetch_add(1, relaxed);
  PENSTOCK_CHECK(*report, g.ballot(true) == g.members());
}

PENSTOCK_CUDA_TEST(ranks_of_a_block_in_three_dimensions_are_complete) {
  const shared_memory<u32> seen(5 * 3 * 7);
  launch({1, dim3(5, 3, 7)}, count_block_ranks, &report, seen.data());
  for (u32 rank = 0; rank < seen.size(); ++rank) PENSTOCK_CHECK_EQ(report, 1u, seen[rank]);
}

}  // namespace
}  // namespace penstock::test
