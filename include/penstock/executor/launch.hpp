// One way to run a body over a grid of groups, on either executor.
//
// A body is a function object, callable as body(g, grid_range) in every group; it walks the range and may keep things (an
// array_ref) from one item to the next. Compiled by g++ it runs on the CPU executor only; compiled by nvcc on both.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/executor/grid.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/warp.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <string>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace penstock {

/// What a launch may take of a GPU.
struct launch_limits {
  u64 groups = 0;  ///< most groups that run at once, for caches that few pins would fill; 0: as many as fit
  u32 units =
      0;  ///< multiprocessors that it is spread over; 0: all. Where others run (a resident kernel), name what they leave
};

/// What a kernel takes: 0 on the CPU.
struct kernel_facts {
  u32 registers = 0;    ///< per thread
  u32 local_bytes = 0;  ///< stack and spills per thread
};

/// The shape of a CUDA launch over `items` items.
struct launch_grid {
  u64 groups;
  u32 blocks, threads;  ///< threads of a block
};

/// REQUIRES: items != 0.
inline launch_grid grid_of(executor const& on, u64 items, launch_limits limits, u32 width, u32 blocks_per_unit) {
  const u64 units = limits.units != 0 ? std::min(limits.units, on.units()) : on.units();
  u64 groups = std::min<u64>(items, units * blocks_per_unit * (cuda_block_threads / width));
  if (limits.groups != 0) groups = std::min(groups, limits.groups);
  // A grid of less than a block is one smaller block, in whole warps.
  const u64 threads = std::min<u64>(cuda_block_threads, round_up(groups * width, 32));
  return {groups, static_cast<u32>(ceil_div(groups * width, threads)), static_cast<u32>(threads)};
}

#if defined(__CUDACC__)
// The body stays in constant memory: views in it are read from there, not from a copy on each thread's stack.
template <u32 Width, u32 Blocks, class Body>
__global__ void __launch_bounds__(cuda_block_threads, Blocks)
    run_body(__grid_constant__ const Body body, u64 items, u64 groups) {
  const u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread / Width >= groups) return;  // a whole group, never a part of one
  body(warp::part<Width>(), grid_range{thread / Width, items, groups});
}

inline void check_launch() {
  const cudaError_t failed = cudaGetLastError();
  if (failed != cudaSuccess) throw error(error_kind::world, std::string("launch a kernel: ") + cudaGetErrorString(failed));
}
#endif

/// Runs `body` over `items` items in the CPU executor's threads. Returns when all are done. Apart from launch_on, whose Width
/// and Blocks are a GPU's: a body is compiled once for all of them.
template <class Body>
void run_lone_threads(executor& on, u64 items, Body const& body) {
  // Pieces small enough that one long one delays no thread, large enough that what a body keeps between items pays.
  const u64 piece = std::clamp<u64>(items / (16 * on.units()), 1, 64);
  on.run(items, piece, [&](u64 first, u64 last) { body(lone_thread{}, grid_range{first, last, 1}); });
}

/// Runs `body` over `items` items, in groups of `Width` lanes on CUDA (a power of two up to 32) and in lone threads on the CPU.
/// `Blocks`: of 256 threads, that fit a multiprocessor at once; the kernel gets 256 / Blocks registers a thread.
/// CUDA: on a stream (a cudaStream_t) of the caller's, and returns when the kernel is on it. CPU: when all items are done.
template <u32 Width, u32 Blocks = cuda_blocks_per_unit, class Body>
void launch_on([[maybe_unused]] void* stream, executor& on, u64 items, Body const& body,
               [[maybe_unused]] launch_limits limits = {}) {
  if (items == 0) return;
  if (on.kind() == executor_kind::cpu) return run_lone_threads(on, items, body);
#if defined(__CUDACC__)
  const gpu_scope here(on.gpu());
  const launch_grid grid = grid_of(on, items, limits, Width, Blocks);
  run_body<Width, Blocks><<<grid.blocks, grid.threads, 0, static_cast<cudaStream_t>(stream)>>>(body, items, grid.groups);
  check_launch();
#else
  throw_bad_input("launch", "a kernel", "this program was compiled without nvcc: use the cpu executor");
#endif
}

/// The same on the executor's own stream. Returns when all items are done.
template <u32 Width, u32 Blocks = cuda_blocks_per_unit, class Body>
void launch(executor& on, u64 items, Body const& body, launch_limits limits = {}) {
  launch_on<Width, Blocks>(on.stream(), on, items, body, limits);
  if (on.kind() == executor_kind::cuda && items != 0) on.synchronize();
}

/// Loads the kernel of `body` and makes the GPU reserve what it needs, without calling the body. A first launch waits for all
/// kernels that run; before a resident one starts, the caller that will launch beside it prepares (PROTOCOLS.md §4). CPU:
/// nothing.
template <u32 Width, u32 Blocks = cuda_blocks_per_unit, class Body>
void prepare_launch([[maybe_unused]] executor& on, [[maybe_unused]] Body const& body) {
#if defined(__CUDACC__)
  if (on.kind() == executor_kind::cpu) return;
  const gpu_scope here(on.gpu());
  run_body<Width, Blocks><<<1, 32, 0, static_cast<cudaStream_t>(on.stream())>>>(body, 0, 0);  // no groups: every thread leaves
  check_launch();
  on.synchronize();
#endif
}

template <u32 Width, u32 Blocks = cuda_blocks_per_unit, class Body>
kernel_facts describe_kernel([[maybe_unused]] executor& on, [[maybe_unused]] Body const& body) {
#if defined(__CUDACC__)
  if (on.kind() == executor_kind::cuda) {
    const gpu_scope here(on.gpu());
    cudaFuncAttributes facts{};
    if (cudaFuncGetAttributes(&facts, run_body<Width, Blocks, Body>) == cudaSuccess) {
      return {static_cast<u32>(facts.numRegs), static_cast<u32>(facts.localSizeBytes)};
    }
  }
#endif
  return {};
}

}  // namespace penstock
