// Calls of the CUDA runtime by the executor: a failure is thrown, and a stream has an owner.
#pragma once

#include "penstock/host/error.hpp"

#include <cuda_runtime.h>

#include <cerrno>
#include <string>

namespace penstock {

inline void check(cudaError_t result, std::string const& operation, std::string const& object, char const* remedy) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // or the next kernel's launch would be blamed for it
  throw error(error_kind::world, operation + " " + object + ": " + cudaGetErrorString(result) + ": " + remedy,
              result == cudaErrorMemoryAllocation ? ENOMEM : EIO);
}

inline int device_attribute(cudaDeviceAttr which, int device) {
  int result = 0;
  check(cudaDeviceGetAttribute(&result, which, device), "ask", "GPU " + std::to_string(device), "run penstock doctor");
  return result;
}

// The default stream waits for every other one that is not told otherwise, so nothing here uses it: beside a resident kernel
// such a call would never return.
class cuda_stream {
 public:
  explicit cuda_stream(cudaStream_t owned) : stream_(owned) {}
  cuda_stream(cuda_stream const&) = delete;
  cuda_stream& operator=(cuda_stream const&) = delete;
  ~cuda_stream() { cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
};

}  // namespace penstock
