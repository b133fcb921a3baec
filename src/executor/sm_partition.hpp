// Some SMs of a GPU for one executor, and the others for who runs beside it: two green contexts.
#pragma once

#include "penstock/core/config.hpp"

#include <cuda_runtime.h>

namespace penstock {

/// The driver's functions are looked up when one is made, so the library links without libcuda. Streams of both contexts work
/// with the memory and the kernels of the CUDA runtime.
class sm_partition {
 public:
  /// At most `units` SMs of a GPU. Throws bad_input for fewer than it gives away, world where the driver knows no green
  /// contexts.
  sm_partition(int device, u32 units);
  ~sm_partition();
  sm_partition(sm_partition const&) = delete;
  sm_partition& operator=(sm_partition const&) = delete;

  u32 units() const { return units_; }
  /// SMs that are left; 0: too few for a stream.
  u32 rest() const { return rest_; }
  /// Non-blocking streams; whoever asks destroys them, before this goes.
  cudaStream_t open_stream(int priority = 0) const;
  cudaStream_t open_stream_in_rest(int priority) const;

 private:
  void* context_ = nullptr;       ///< CUgreenCtx
  void* rest_context_ = nullptr;  ///< null where the rest is too small for one
  u32 units_ = 0;
  u32 rest_ = 0;
};

}  // namespace penstock
