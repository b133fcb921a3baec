// Calls of the CUDA runtime go to a GPU of the caller's choice for a while.
#pragma once

#if defined(__CUDACC__)

#include "penstock/host/error.hpp"

#include <cuda_runtime.h>
#include <string>

namespace penstock {

/// As long as this lives the thread's current GPU is number `gpu`; then it is again what it was. Less than 0: nothing changes.
class gpu_scope {
 public:
  explicit gpu_scope(int gpu) {
    int now = gpu;
    if (gpu < 0 || cudaGetDevice(&now) != cudaSuccess || now == gpu) return;
    const cudaError_t failed = cudaSetDevice(gpu);
    if (failed != cudaSuccess) {
      throw error(error_kind::world, "use GPU " + std::to_string(gpu) + ": " + cudaGetErrorString(failed));
    }
    before_ = now;
  }
  gpu_scope(gpu_scope const&) = delete;
  gpu_scope& operator=(gpu_scope const&) = delete;
  ~gpu_scope() {
    if (before_ >= 0) cudaSetDevice(before_);
  }

 private:
  int before_ = -1;
};

}  // namespace penstock

#endif
