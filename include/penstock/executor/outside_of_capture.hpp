// Calls of the CUDA runtime that are no part of a graph.
#pragma once

#if defined(__CUDACC__)

#include <cuda_runtime.h>

namespace penstock {

/// As long as this lives its thread may allocate, and ask and wait for events of other streams, although a stream is being
/// captured: such calls end a capture otherwise, be it another thread's.
class outside_of_capture {
 public:
  outside_of_capture() { cudaThreadExchangeStreamCaptureMode(&before_); }
  outside_of_capture(outside_of_capture const&) = delete;
  outside_of_capture& operator=(outside_of_capture const&) = delete;
  ~outside_of_capture() { cudaThreadExchangeStreamCaptureMode(&before_); }

 private:
  cudaStreamCaptureMode before_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace penstock

#endif
