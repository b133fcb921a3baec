// The resident kernel of a model_server: one block to an SM, every warp a server.
#include "../executor/resident_place.hpp"
#include "model_runner.hpp"
#include "served_queue_body.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/group/warp.hpp"
#include "penstock/host/error.hpp"

#include <cuda_runtime.h>

#include <cerrno>
#include <string>
#include <thread>

namespace penstock::controllers {
namespace {

// 128 registers a thread, for 16 loads of 16 bytes on their way in each.
constexpr u32 block_threads = 512;
constexpr u32 warps_per_block = block_threads / 32;

/// Short at first: a command may be there any moment.
class kernel_idle {
 public:
  __device__ void reset() { sleep_ns_ = 0; }
  __device__ void wait() {
    if (sleep_ns_ != 0) __nanosleep(sleep_ns_);
    sleep_ns_ = sleep_ns_ < 256 ? sleep_ns_ + 32 : 256;
  }

 private:
  u32 sleep_ns_ = 0;
};

__global__ void __launch_bounds__(block_threads, 1)
    serve_drives(__grid_constant__ const server_view view, u64 idle_ns, float ns_per_cycle) {
  if (threadIdx.x == 0) {
    const u32 running = device_ref<u32>(view.shared->blocks_running).fetch_add(1, acq_rel) + 1;
    if (running == gridDim.x) system_ref<u32>(view.control->answered).store(1, release);
  }
  const warp g = warp::whole();
  // Neighbouring servers are on different SMs, so that few queues spread over all of them.
  const u32 self = threadIdx.x / 32 * gridDim.x + blockIdx.x;
  fine_clock clock(clock_step_ns(), ns_per_cycle);
  kernel_idle idle;
  serve_until_told(g, view, self, gridDim.x * warps_per_block, idle_ns, clock, idle);
}

void check(cudaError_t result, char const* what) {
  if (result == cudaSuccess) return;
  throw error(error_kind::world, std::string("start a model server: ") + what + ": " + cudaGetErrorString(result), EIO);
}

int device_attribute(cudaDeviceAttr which, int device) {
  int result = 0;
  check(cudaDeviceGetAttribute(&result, which, device), "cudaDeviceGetAttribute");
  return result;
}

class kernel_runner final : public model_runner {
 public:
  kernel_runner(resident_place& place, model_server_options const& options)
      : place_(place), options_(options), units_(place.units()), stream_(static_cast<cudaStream_t>(place.stream())) {
    const gpu_scope here(place_.device());
    // All the shared memory that a block may have: no block of anyone else fits beside it, so N units are N SMs.
    shared_bytes_ = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, place_.device());
    check(cudaFuncSetAttribute(serve_drives, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_), "shared memory");
    ns_per_cycle_ = 1e6f / static_cast<float>(device_attribute(cudaDevAttrClockRate, place_.device()));
  }

  u32 units() const override { return units_; }

  bool is_local(void const* address) const override {
    cudaPointerAttributes about{};
    return place_.same_gpu() && cudaPointerGetAttributes(&about, address) == cudaSuccess && about.type == cudaMemoryTypeDevice;
  }

  void start(server_view const& view) override {
    const gpu_scope here(place_.device());
    serve_drives<<<units_, block_threads, shared_bytes_, stream_>>>(view, options_.idle_timeout_ns, ns_per_cycle_);
    check(cudaGetLastError(), "launch");
    const system_ref<u32> answered(view.control->answered);
    backoff wait(options_.start_timeout_ns);
    for (bool in_time = true; answered.load(acquire) == 0; in_time = wait.pause()) {
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state != cudaErrorNotReady) check(state, "kernel");
      if (in_time) continue;
      stop(view);
      throw error(error_kind::world,
                  "start a model server on " + std::to_string(units_) +
                      " SMs: they did not become free in time: wait for other kernels, or ask for fewer",
                  EBUSY);
    }
  }

  bool stop(server_view const& view) override {
    system_ref<u32>(view.control->stop).store(1, release);
    backoff wait(options_.stop_timeout_ns);
    for (bool in_time = true; in_time; in_time = wait.pause()) {
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state == cudaErrorNotReady) continue;
      check(state, "kernel");
      return true;
    }
    return false;
  }

 private:
  resident_place& place_;
  model_server_options options_;
  u32 units_;
  cudaStream_t stream_;
  int shared_bytes_ = 0;
  float ns_per_cycle_ = 1;
};

}  // namespace

std::unique_ptr<model_runner> make_kernel_runner(resident_place& place, model_server_options const& options) {
  return std::make_unique<kernel_runner>(place, options);
}

}  // namespace penstock::controllers
