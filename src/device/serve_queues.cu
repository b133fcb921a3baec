// The resident kernel of a queue_service: one block to an SM, every warp a server. In this folder for its register cap: it
// instantiates the functions that read_slowly.cu has, and the linker keeps one of the two.
#include "../executor/resident_place.hpp"
#include "../runtime/service_runner.hpp"

#include "penstock/executor/gpu_scope.hpp"
#include "penstock/group/warp.hpp"
#include "penstock/host/error.hpp"

#include <cuda_runtime.h>

#include <cerrno>
#include <string>

namespace penstock {
namespace {

constexpr u32 block_threads = 256;
constexpr u32 warps_per_block = block_threads / 32;

/// Short at first: a completion may be there any moment.
class service_idle {
 public:
  __device__ void reset() { sleep_ns_ = 0; }
  __device__ void wait() {
    if (sleep_ns_ != 0) __nanosleep(sleep_ns_);
    sleep_ns_ = sleep_ns_ < 256 ? sleep_ns_ + 32 : 256;
  }

 private:
  u32 sleep_ns_ = 0;
};

__global__ void __launch_bounds__(block_threads, 1) serve_queues(service_view view, u64 idle_ns) {
  // Neighbouring servers are on different SMs, so that few queues spread over all of them.
  const u32 self = threadIdx.x / 32 * gridDim.x + blockIdx.x;
  service_idle idle;
  serve_cache_queues(warp::whole(), *view.cache, *view.control, *view.shared, self, gridDim.x * warps_per_block, idle_ns, idle);
}

void check(cudaError_t result, char const* what) {
  if (result == cudaSuccess) return;
  throw error(error_kind::world, std::string("start a queue service: ") + what + ": " + cudaGetErrorString(result), EIO);
}

class service_kernel final : public service_runner {
 public:
  service_kernel(resident_place& place, queue_service_options const& options)
      : place_(place), options_(options), stream_(static_cast<cudaStream_t>(place.stream())) {
    const gpu_scope here(place_.device());
    // All the shared memory that a block may have: no block of anyone else fits beside it, so N units are N SMs.
    check(cudaDeviceGetAttribute(&shared_bytes_, cudaDevAttrMaxSharedMemoryPerBlockOptin, place_.device()), "shared memory");
    check(cudaFuncSetAttribute(serve_queues, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_), "shared memory");
  }

  u32 units() const override { return place_.units(); }

  void start(service_view const& view) override {
    const gpu_scope here(place_.device());
    serve_queues<<<place_.units(), block_threads, shared_bytes_, stream_>>>(view, options_.idle_timeout_ns);
    check(cudaGetLastError(), "launch");
  }

  bool runs() override {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return true;
    check(state, "kernel");
    return false;
  }

  void join() override {}

 private:
  resident_place& place_;
  queue_service_options options_;
  cudaStream_t stream_;
  int shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<service_runner> make_service_kernel(resident_place& place, queue_service_options const& options) {
  return std::make_unique<service_kernel>(place, options);
}

}  // namespace penstock
