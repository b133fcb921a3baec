// Kernels of the user's own on a GPU: a linked image, loaded as a library of CUDA's.
#include "libs/kernels/user_kernel.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/executor/kept_for_graphs.hpp"
#include "penstock/executor/outside_of_capture.hpp"
#include "penstock/host/error.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cerrno>
#include <vector>

namespace penstock::kernels {
namespace {

class event_end final : public launch_end {
 public:
  event_end(int gpu, cudaStream_t stream) : gpu_(gpu) {
    const gpu_scope here(gpu);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    check(cudaEventRecord(event_, stream));
  }
  event_end(event_end const&) = delete;
  event_end& operator=(event_end const&) = delete;
  ~event_end() override {
    const gpu_scope here(gpu_);
    cudaEventDestroy(event_);
  }

  bool is_reached() override {
    const outside_of_capture allowed;
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state);
    return true;
  }
  void wait() override {
    const outside_of_capture allowed;
    check(cudaEventSynchronize(event_));
  }

 private:
  static void check(cudaError_t result) {
    if (result == cudaSuccess) return;
    throw error(error_kind::world, std::string("run a kernel: ") + cudaGetErrorString(result) + ": its results are lost", EIO);
  }

  int gpu_;
  cudaEvent_t event_ = nullptr;
};

class cuda_kernel final : public user_kernel {
 public:
  cuda_kernel(executor& on, std::string const& name, std::span<std::byte const> cubin)
      : on_(on), name_(name), stop_(on.memory(), memory_kind::shared, 1) {
    const gpu_scope here(on.gpu());
    check(cudaLibraryLoadData(&library_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "load");
    try {
      check(cudaLibraryGetKernel(&kernel_, library_, name.c_str()), "find");
      set_stop_word();
      look_at_parameters();
    } catch (...) {
      cudaLibraryUnload(library_);
      throw;
    }
  }
  cuda_kernel(cuda_kernel const&) = delete;
  cuda_kernel& operator=(cuda_kernel const&) = delete;
  ~cuda_kernel() override {
    const gpu_scope here(on_.gpu());
    cudaLibraryUnload(library_);
  }

  executor& on() const override { return on_; }
  void set_stopped(bool stopped) override { system_ref<u32>(*stop_.data()).store(stopped ? 1 : 0, relaxed); }

  launch_facts facts(u32 block_threads, u32 shared_bytes) const override {
    const gpu_scope here(on_.gpu());
    cudaFuncAttributes found{};
    check(cudaFuncGetAttributes(&found, kernel_), "describe");
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_, static_cast<int>(block_threads), shared_bytes),
          "describe");
    int unit_threads = 0;
    check(cudaDeviceGetAttribute(&unit_threads, cudaDevAttrMaxThreadsPerMultiProcessor, on_.gpu()), "describe");
    return {static_cast<u32>(found.numRegs),
            static_cast<u32>(found.localSizeBytes),
            static_cast<u32>(found.sharedSizeBytes),
            static_cast<u32>(found.maxThreadsPerBlock),
            static_cast<u32>(blocks),
            static_cast<u32>(on_.units()),
            static_cast<u32>(unit_threads)};
  }

  bool start(std::span<void* const> parameters, std::span<array_descriptor const>, launch_shape const& shape) override {
    const gpu_scope here(on_.gpu());
    const dim3 grid(shape.grid.x, shape.grid.y, shape.grid.z), block(shape.block.x, shape.block.y, shape.block.z);
    check(cudaLaunchKernel(kernel_, grid, block, const_cast<void**>(parameters.data()), shape.shared_bytes,
                           static_cast<cudaStream_t>(shape.stream)),
          "launch");
    return true;
  }

  u64 parameter_bytes(u64 index) const override { return index < parameters_.size() ? parameters_[index] : 0; }

  std::unique_ptr<launch_end> end_on(void* stream) override {
    if (is_captured(on_.gpu(), stream)) return nullptr;
    return std::make_unique<event_end>(on_.gpu(), static_cast<cudaStream_t>(stream));
  }

 private:
  // A kernel that never asks whether it is stopped has no such variable.
  void set_stop_word() {
    void* variable = nullptr;
    std::size_t bytes = 0;
    if (cudaLibraryGetGlobal(&variable, &bytes, library_, "penstock_stop") != cudaSuccess) {
      cudaGetLastError();
      return;
    }
    *stop_.data() = 0;
    u32 const* const word = stop_.data();
    on_.memory().write(variable, &word, sizeof word);
  }

  // Of drivers that know: from CUDA 12.4 on.
  void look_at_parameters() {
    using ask = CUresult(CUkernel, std::size_t, std::size_t*, std::size_t*);
    void* found = nullptr;
    cudaDriverEntryPointQueryResult answer{};
    const auto failed = cudaGetDriverEntryPointByVersion("cuKernelGetParamInfo", &found, 12040, cudaEnableDefault, &answer);
    if (failed != cudaSuccess || answer != cudaDriverEntryPointSuccess) {
      cudaGetLastError();
      return;
    }
    std::size_t offset = 0, bytes = 0;
    auto* const of_kernel = reinterpret_cast<CUkernel>(kernel_);
    while (reinterpret_cast<ask*>(found)(of_kernel, parameters_.size(), &offset, &bytes) == CUDA_SUCCESS) {
      parameters_.push_back(bytes);
    }
  }

  void check(cudaError_t result, char const* operation) const {
    if (result == cudaSuccess) return;
    cudaGetLastError();  // or the next launch would be blamed for it
    const bool wrong =
        result == cudaErrorInvalidValue || result == cudaErrorInvalidConfiguration || result == cudaErrorLaunchOutOfResources;
    throw error(wrong ? error_kind::bad_input : error_kind::world,
                std::string(operation) + " the kernel " + name_ + ": " + cudaGetErrorString(result) +
                    (wrong ? ": choose a smaller block or grid" : ": see kernel.report()"),
                EIO);
  }

  executor& on_;
  std::string name_;
  buffer<u32> stop_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  std::vector<u64> parameters_;  ///< bytes of each
};

}  // namespace

u32 gpu_architecture(executor const& on) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, on.gpu());
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, on.gpu());
  return static_cast<u32>(major * 10 + minor);
}

std::unique_ptr<user_kernel> load_cuda_kernel(executor& on, std::string const& name, std::span<std::byte const> cubin) {
  return std::make_unique<cuda_kernel>(on, name, cubin);
}

}  // namespace penstock::kernels
