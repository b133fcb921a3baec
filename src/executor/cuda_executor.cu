#include "cpu_executor.hpp"
#include "cuda_executor.hpp"
#include "penstock/host/error.hpp"

#include <cuda_runtime.h>

#include <cerrno>
#include <string>

namespace penstock {
namespace {

void check(cudaError_t result, std::string const& operation, std::string const& object, char const* remedy) {
  if (result == cudaSuccess) return;
  throw error(error_kind::world, operation + " " + object + ": " + cudaGetErrorString(result) + ": " + remedy,
              result == cudaErrorMemoryAllocation ? ENOMEM : EIO);
}

// The default stream waits for every other one that is not told otherwise, so nothing here uses it: beside a resident kernel
// such a call would never return.
class cuda_stream {
 public:
  cuda_stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "open", "the cuda executor", "run penstock doctor");
  }
  cuda_stream(cuda_stream const&) = delete;
  cuda_stream& operator=(cuda_stream const&) = delete;
  ~cuda_stream() { cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Local memory is HBM; shared memory is pinned host memory, which kernels reach at the same address.
class cuda_memory_resource final : public memory_resource {
 public:
  explicit cuda_memory_resource(cudaStream_t stream) : stream_(stream) {}

  void* allocate(memory_kind kind, u64 bytes) override {
    void* address = nullptr;
    const std::string size = std::to_string(bytes) + " bytes";
    if (kind == memory_kind::local) {
      check(cudaMalloc(&address, bytes), "allocate", size + " of GPU memory", "ask for a smaller cache");
      check(cudaMemsetAsync(address, 0, bytes, stream_), "clear", size + " of GPU memory", "the GPU is in trouble");
      check(cudaStreamSynchronize(stream_), "clear", size + " of GPU memory", "the GPU is in trouble");
    } else {
      check(cudaHostAlloc(&address, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "pin", size + " of host memory",
            "ask for fewer queues or raise the limit of locked memory (ulimit -l)");
      std::fill_n(static_cast<char*>(address), bytes, char{0});
    }
    return address;
  }

  void deallocate(memory_kind kind, void* address, u64) noexcept override {
    kind == memory_kind::local ? cudaFree(address) : cudaFreeHost(address);
  }

  void write(void* to, void const* from, u64 bytes) override { copy(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { copy(to, from, bytes); }

 private:
  void copy(void* to, void const* from, u64 bytes) {
    const std::string size = std::to_string(bytes) + " bytes";
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy", size, "see the kernel before it");
    check(cudaStreamSynchronize(stream_), "copy", size, "see the kernel before it");
  }

  cudaStream_t stream_;
};

class cuda_executor final : public executor {
 public:
  cuda_executor() {
    int device = 0;
    check(cudaGetDevice(&device), "open", "the cuda executor", "run penstock doctor");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "open", "the cuda executor", "run penstock doctor");
    units_ = static_cast<u32>(properties.multiProcessorCount);
    name_ = std::string(properties.name) + " (" + std::to_string(units_) + " SMs)";
  }

  executor_kind kind() const override { return executor_kind::cuda; }
  std::string device() const override { return name_; }
  memory_resource& memory() override { return memory_; }
  u32 units() const override { return units_; }
  void synchronize() override { check(cudaStreamSynchronize(stream_.get()), "run", "a kernel", "its results are lost"); }
  void* stream() override { return stream_.get(); }

  void run(u64, u64, std::function<void(u64, u64)> const&) override {
    throw_bad_input("run", "host work", "the cuda executor runs kernels only: use launch");
  }

 private:
  cuda_stream stream_;
  cuda_memory_resource memory_{stream_.get()};
  std::string name_;
  u32 units_ = 0;
};

}  // namespace

bool cuda_usable(std::string* reason) {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result == cudaSuccess && devices > 0) return true;
  cudaGetLastError();  // not sticky for later calls
  if (reason != nullptr) {
    *reason = result == cudaErrorInsufficientDriver ? "there is no CUDA driver, or it is too old: install one for CUDA 13"
                                                    : "there is no CUDA device on this machine";
  }
  return false;
}

std::unique_ptr<executor> make_cuda_executor() { return std::make_unique<cuda_executor>(); }

}  // namespace penstock
