// The CUDA executor; cuda_executor.cu, or a refusal where there was no nvcc.
#pragma once

#include "penstock/executor/executor.hpp"

namespace penstock {

/// On the thread's current GPU where `gpu` is -1. Throws bad_input for one that there is not. `shared`: where shared memory
/// comes from instead of CUDA. REQUIRES: cuda_usable().
std::unique_ptr<executor> make_cuda_executor(executor_limits const& limits, int gpu, memory_resource* shared = nullptr);

}  // namespace penstock
