// Functions of CUDA's driver, found when the program runs: the library is not linked to it.
#pragma once

#include "penstock/host/error.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cerrno>
#include <string>

namespace penstock {

/// One of them; `version`: that of CUDA which its type is of. Throws penstock::error (world): "OPERATION: the driver has no
/// ...: REMEDY".
template <class Function>
Function* driver_function(char const* name, unsigned version, std::string const& operation, char const* remedy) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
#if CUDART_VERSION >= 12050
  const cudaError_t failed = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &answer);
#else
  (void)version;  // that of this runtime
  const cudaError_t failed = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &answer);
#endif
  if (failed == cudaSuccess && answer == cudaDriverEntryPointSuccess && found != nullptr) {
    return reinterpret_cast<Function*>(found);
  }
  cudaGetLastError();  // not sticky for later calls
  throw error(error_kind::world, operation + ": the driver has no " + name + ": " + remedy, ENOSYS);
}

}  // namespace penstock
