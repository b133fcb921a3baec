#include "penstock/executor/kept_for_graphs.hpp"

#include "kept_for_graphs.hpp"

#include "penstock/executor/gpu_scope.hpp"
#include "penstock/host/error.hpp"

#include <cuda_runtime.h>

#include <cerrno>
#include <string>
#include <utility>

namespace penstock {
namespace {

void check(cudaError_t result, char const* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw error(
      error_kind::world,
      std::string("capture into a CUDA graph: ") + cudaGetErrorString(result) + ": " + what + "; start the process anew", EIO);
}

cudaGraph_t captured_graph(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
  check(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph), "the stream does not answer");
#else
  check(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph), "the stream does not answer");
#endif
  return graph;
}

}  // namespace

bool is_captured(int gpu, void* stream) {
  const gpu_scope here(gpu);
  cudaStreamCaptureStatus status{};
  check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "the stream does not answer");
  return status != cudaStreamCaptureStatusNone;
}

void keep_for_graph(int gpu, void* stream, std::shared_ptr<void> kept) {
  const gpu_scope here(gpu);
  auto owned = std::make_unique<std::shared_ptr<void>>(std::move(kept));
  cudaUserObject_t object = nullptr;
  check(cudaUserObjectCreate(&object, owned.get(), hand_to_drop, 1, cudaUserObjectNoDestructorSync), "no object of a graph");
  static_cast<void>(owned.release());
  check(cudaGraphRetainUserObject(captured_graph(static_cast<cudaStream_t>(stream)), object, 1, cudaGraphUserObjectMove),
        "the graph keeps nothing");
}

}  // namespace penstock
