// The table of calls that a kernel compiled for the CPU makes, and the threads of a block there.
#pragma once

#include "penstock/kernels/folder_call.hpp"

namespace penstock::kernels {

/// Filled by the library; the order is an ABI between it and kernels.
struct host_calls {
  piece (*read)(array_descriptor const*, u64 address, u32 bytes);
  void (*store)(array_descriptor const*, u64 address, u32 bytes, piece value);
  u64 (*change)(array_descriptor const*, u64 address, u32 bytes, change_kind, u64 value, u64 expected);
  void (*read_span)(array_descriptor const*, u64 address, u64 bytes, void* to, u32 lane, u32 lanes);
  void (*prefetch)(array_descriptor const*, u64 address);
  void (*out_of_range)(array_descriptor const*, u64 index);
  void (*call_folder)(void const* folder, folder_request const*, folder_answer*);
  void (*wait)(u32 kind, u32 lanes);  ///< barrier_kind; lanes: of a warp
};

enum barrier_kind : u32 { of_block, of_warp, of_nobody };  ///< of_nobody: it lets the others of its block go on

/// As CUDA's dim3.
struct extent {
  u32 x = 1, y = 1, z = 1;
};

/// The thread that runs: what threadIdx, blockIdx, blockDim and gridDim are.
struct host_thread {
  extent thread, block, block_size, grid_size;
  void* dynamic_shared = nullptr;
  u64* exchanged = nullptr;   ///< 32 words of its warp, behind those of the warps before it; zero where nobody votes
  u32 const* stop = nullptr;  ///< nonzero: the launch has passed its deadline
};

}  // namespace penstock::kernels
