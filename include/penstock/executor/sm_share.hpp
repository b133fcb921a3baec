// Streams of CUDA on some SMs of a GPU, and streams on the others.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// Two green contexts, for callers that bring streams of their own to calls of an executor that has all SMs. A share lasts as
/// long as the process, and so do its streams: allocators of others (PyTorch's) keep memory by the stream that it was made for,
/// and may ask that stream again whenever it is freed. Thread-safe.
class sm_share {
 public:
  virtual ~sm_share() = default;

  /// Its SMs: the most that the GPU gives away in whole groups without exceeding what was asked for.
  virtual u32 units() const = 0;
  /// The others.
  virtual u32 rest() const = 0;
  /// A new non-blocking cudaStream_t on these SMs. `priority`: as CUDA has it; less is sooner, among streams of this share.
  virtual void* open_stream(int priority) const = 0;
  virtual void* open_stream_in_rest(int priority) const = 0;
};

/// The one of at most `units` SMs of GPU number `gpu`; the same for each caller. Throws bad_input for fewer than the GPU gives
/// away, for so many that it can give away none of the others, and in a build without CUDA or with one before 12.5; world where
/// the driver is older than that.
sm_share& share_of_sms(int gpu, u32 units);

}  // namespace penstock
