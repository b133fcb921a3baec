// GPUfs's cache by warps, their parts and blocks, over files that workers of the host read.
#include "device/gpufs_cache_test_body.hpp"
#include "libs/bench/gpufs_cache.hpp"
#include "support/run_on_device.cuh"
#include "support/scratch_files.hpp"

namespace penstock::test {
namespace {

using bench::gpufs_allocation;
using bench::gpufs_lookup;
using bench::gpufs_options;
using bench::gpufs_transfers;

const u32 warps = scaled_warps(4);
constexpr u32 blocks = 4, block_threads = 256, file_count = 2;
constexpr u64 file_bytes = 512 * 4096 + 100;

template <class Run>
void run_with_gpufs(gpufs_options options, check_report& report, Run const& run) {
  const test_support::scratch_folder scratch;
  std::vector<std::string> paths;
  for (u32 f = 0; f < file_count; ++f) {
    std::string text(file_bytes, '\0');
    for (u64 i = 0; i < file_bytes; ++i) text[i] = static_cast<char>(gpufs_byte(f, i));
    paths.push_back(scratch / std::to_string(f));
    test_support::put_file(paths.back(), text);
  }
  const auto on = open_executor("cuda");
  const bench::gpufs_cache cache(*on, paths, options);
  // A group's number is that of its first thread.
  const u64 groups = std::max(threads_of_warps(warps), blocks * block_threads);
  const buffer<std::byte> rooms(on->memory(), memory_kind::local, groups * gpufs_reads_body::room);
  run(gpufs_reads_body{cache.view(), rooms.data(), file_count, file_bytes, 20});
  PENSTOCK_CHECK_EQ(report, 0u, cache.pinned_frames());
  PENSTOCK_CHECK_EQ(report, cache.counts().insertions, cache.traffic().pages);
}

gpufs_options small_gpufs() {
  gpufs_options o;
  o.cache_bytes = 256 * 4096;
  o.timeout_ns = 20 * one_second_ns;
  return o;
}

template <gpufs_lookup Lookup, gpufs_allocation Allocation, gpufs_transfers Transfers>
void run_gpufs(check_report& report) {
  gpufs_options o = small_gpufs();
  o.lookup = Lookup, o.allocation = Allocation, o.transfers = Transfers;
  o.allocators = Allocation == gpufs_allocation::ring ? 4 : 1;
  o.workers = Transfers == gpufs_transfers::batched ? 2 : 1;
  run_with_gpufs(o, report, [&](gpufs_reads_body const& body) {
    launch(launch_shape(warps / 4, 128), run_parts_kernel<gpufs_reads_body, 32>, body, &report, cuda_test_seed());
    run_blocks_on_device(body, report, blocks, block_threads);
  });
}

PENSTOCK_CUDA_TEST_BESIDE(gpufs_original_has_the_bytes_of_the_files) {
  run_gpufs<gpufs_lookup::radix_tree, gpufs_allocation::locked_list, gpufs_transfers::single>(report);
}
PENSTOCK_CUDA_TEST_BESIDE(gpufs_hash_table_has_the_bytes_of_the_files) {
  run_gpufs<gpufs_lookup::hash_table, gpufs_allocation::locked_list, gpufs_transfers::single>(report);
}
PENSTOCK_CUDA_TEST_BESIDE(gpufs_rings_have_the_bytes_of_the_files) {
  run_gpufs<gpufs_lookup::radix_tree, gpufs_allocation::ring, gpufs_transfers::single>(report);
}
PENSTOCK_CUDA_TEST_BESIDE(gpufs_optimized_has_the_bytes_of_the_files) {
  run_gpufs<gpufs_lookup::hash_table, gpufs_allocation::ring, gpufs_transfers::batched>(report);
}

}  // namespace
}  // namespace penstock::test
