// Runs one test body (run_everywhere.hpp) under everything that stands for a thread_group on a GPU. The body is copied to the
// kernel: it is trivially copyable, and its `prepare` and `verify` are the test's own business.
#pragma once

#include "penstock/group/block.hpp"
#include "penstock/group/warp.hpp"
#include "support/cuda_main.cuh"

namespace penstock::test {

/// All kernels use blocks of one dimension. A group's number is that of its lowest thread, so every bound is the thread count.
__device__ inline u32 global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

template <class G>
__device__ test_context device_context(G const& g, check_report* report, u64 seed) {
  const u32 threads = gridDim.x * blockDim.x;
  const u32 thread = global_thread();
  return {report, {threads, threads, seed}, thread - g.rank() + lowest(g.members()), thread};
}

template <class Body>
__global__ void run_lone_kernel(Body body, check_report* report, u64 seed) {
  const lone_thread g;
  body(g, device_context(g, report, seed));
}

template <class Body, u32 Width>
__global__ void run_parts_kernel(Body body, check_report* report, u64 seed) {
  const warp g = warp::part<Width>();
  body(g, device_context(g, report, seed));
}

/// The lanes of a warp take `ways` branches, at random: groups with holes, all of one warp in flight at once.
template <class Body>
__global__ void run_diverged_kernel(Body body, check_report* report, u64 seed, u32 ways) {
  const u64 way = random_word(seed, global_thread() / 32, threadIdx.x % 32) % ways;
  for (u64 w = 0; w < ways; ++w) {
    if (w != way) continue;
    const warp g = warp::active();
    body(g, device_context(g, report, seed));
    break;
  }
}

/// The bound keeps the registers of any body low enough for the largest block.
template <class Body>
__global__ __launch_bounds__(1024) void run_block_kernel(Body body, check_report* report, u64 seed) {
  __shared__ block_scratch scratch;
  const block g(scratch);
  body(g, device_context(g, report, seed));
}

/// The bound of test_context::thread and ::group for a run of this many warps.
inline constexpr u32 threads_of_warps(u32 warps) { return warps * 32; }

/// Lone threads, whole, half and quarter warps, and warps diverged into 2, 3 and 5 groups. REQUIRES: warps is a multiple of 4.
template <class Body>
void run_warps_on_device(Body body, check_report& report, u32 warps,
                         std::source_location at = std::source_location::current()) {
  const launch_shape shape(warps / 4, 128, at);
  const u64 seed = cuda_test_seed();
  launch(shape, run_lone_kernel<Body>, body, &report, seed);
  launch(shape, run_parts_kernel<Body, 32>, body, &report, seed);
  launch(shape, run_parts_kernel<Body, 16>, body, &report, seed);
  launch(shape, run_parts_kernel<Body, 8>, body, &report, seed);
  for (u32 ways : {2u, 3u, 5u}) launch(shape, run_diverged_kernel<Body>, body, &report, seed, ways);
}

/// Blocks of `threads` threads, each one group. For code that is generic over the width of the mask.
template <class Body>
void run_blocks_on_device(Body body, check_report& report, u32 blocks, u32 threads,
                          std::source_location at = std::source_location::current()) {
  launch(launch_shape(blocks, threads, at), run_block_kernel<Body>, body, &report, cuda_test_seed());
}

}  // namespace penstock::test
