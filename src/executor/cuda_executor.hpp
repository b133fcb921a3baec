// The CUDA executor; cuda_executor.cu, or a refusal where there was no nvcc.
#pragma once

#include "penstock/host/executor.hpp"

namespace penstock {

/// REQUIRES: cuda_usable().
std::unique_ptr<executor> make_cuda_executor(executor_limits const& limits);

}  // namespace penstock
