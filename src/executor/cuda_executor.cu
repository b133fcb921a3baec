#include "cpu_executor.hpp"
#include "cuda_calls.hpp"
#include "cuda_executor.hpp"
#include "cuda_memory_resource.hpp"
#include "l2_window.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/host/error.hpp"
#include "resident_place.hpp"
#include "sm_partition.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

namespace penstock {
namespace {

cudaStream_t open_stream(std::optional<sm_partition> const& share) {
  if (share) return share->open_stream();
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "open", "the cuda executor", "run penstock doctor");
  return made;
}

// Streams share a few hardware queues, in which a kernel waits for the one before it; another priority has its own.
cudaStream_t open_resident_stream(sm_partition const* share) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "open", "a stream", "run penstock doctor");
  if (share != nullptr) return share->open_stream_in_rest(greatest);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, greatest), "open", "a stream", "run penstock doctor");
  return made;
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "open", "the cuda executor", "run penstock doctor");
  return device;
}

class cuda_executor final : public executor {
 public:
  cuda_executor(executor_limits const& limits, memory_resource* shared)
      : device_(current_device()), all_units_(units_of(device_)) {
    if (limits.units != 0 && limits.units < all_units_) share_.emplace(device_, limits.units);
    stream_.emplace(open_stream(share_));
    memory_.emplace(device_, stream_->get(), shared);
    window_.emplace(device_, stream_->get());
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_), "open", "the cuda executor", "run penstock doctor");
    name_ = std::string(properties.name) + " (" + (share_ ? std::to_string(units()) + " of " : "") +
            std::to_string(all_units_) + " SMs)";
  }

  static u32 units_of(int device) { return static_cast<u32>(device_attribute(cudaDevAttrMultiProcessorCount, device)); }

  executor_kind kind() const override { return executor_kind::cuda; }
  std::string device() const override { return name_; }
  memory_resource& memory() override { return *memory_; }
  u32 units() const override { return share_ ? share_->units() : all_units_; }
  void synchronize() override { check(cudaStreamSynchronize(stream_->get()), "run", "a kernel", "its results are lost"); }
  void* stream() override { return stream_->get(); }
  u64 keep_in_l2(void const* address, u64 bytes) override { return window_->open(address, bytes); }
  void forget_in_l2(void const* address) override { window_->forget(address); }

  void run(u64, u64, std::function<void(u64, u64)> const&) override {
    throw_bad_input("run", "host work", "the cuda executor runs kernels only: use launch");
  }

  int gpu() const override { return device_; }
  sm_partition const* share() const { return share_ ? &*share_ : nullptr; }

  /// SMs for a kernel that stays; 0: a third of the GPU, or all that is left. Who launches on this executor keeps one.
  u32 reserve(u32 units) {
    const u32 most = share_ ? share_->rest() : all_units_ - 1;
    u32 taken = reserved_.load();
    for (;;) {
      const u32 left = most - std::min(most, taken);
      const u32 wanted = units != 0 ? units : std::min(left, all_units_ / 3 + 1);
      if (wanted > left || wanted == 0) refuse_reservation(wanted, left);
      if (reserved_.compare_exchange_weak(taken, taken + wanted)) return wanted;
    }
  }
  void give_back(u32 units) { reserved_.fetch_sub(units); }

 private:
  [[noreturn]] void refuse_reservation(u32 wanted, u32 left) const {
    throw_bad_input("start", "a resident kernel on " + std::to_string(wanted) + " SMs",
                    "the GPU has " + std::to_string(all_units_) + ", of which whoever asks and other resident kernels leave " +
                        std::to_string(left) + ": ask for at most as many");
  }

  int device_;
  u32 all_units_;
  std::optional<sm_partition> share_;
  std::optional<cuda_stream> stream_;
  std::optional<cuda_memory_resource> memory_;
  std::optional<l2_window> window_;
  std::string name_;
  std::atomic<u32> reserved_{0};
};

/// Beside the executor's own kernels.
class place_beside final : public resident_place {
 public:
  place_beside(cuda_executor& on, u32 units) : on_(on), units_(on.reserve(units)), stream_(open_or_give_back(on, units_)) {}
  ~place_beside() override { on_.give_back(units_); }

  int device() const override { return on_.gpu(); }
  u32 units() const override { return units_; }
  bool same_gpu() const override { return true; }
  u32 units_taken() const override { return on_.share() != nullptr ? 0 : units_; }
  memory_resource& memory() override { return on_.memory(); }
  void* stream() const override { return stream_.get(); }

 private:
  static cudaStream_t open_or_give_back(cuda_executor& on, u32 units) {
    try {
      const gpu_scope here(on.gpu());
      return open_resident_stream(on.share());
    } catch (...) {
      on.give_back(units);
      throw;
    }
  }

  cuda_executor& on_;
  u32 units_;
  cuda_stream stream_;
};

void reach(int from, int to) {
  const gpu_scope here(from);
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, from, to), "ask", "GPU " + std::to_string(from), "run penstock doctor");
  if (can == 0) {
    throw_bad_input("start", "a resident kernel on another GPU",
                    "GPU " + std::to_string(from) + " does not reach the memory of GPU " + std::to_string(to) +
                        ": choose two that NVLink or one PCIe switch connects");
  }
  const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
  if (result != cudaErrorPeerAccessAlreadyEnabled) check(result, "reach", "GPU " + std::to_string(to), "run penstock doctor");
  cudaGetLastError();  // already enabled is no failure
}

/// A GPU of its own. Addresses are the same on both.
class place_on_peer final : public resident_place {
 public:
  place_on_peer(cuda_executor const& on, int device, u32 units)
      : device_(checked(on, device)), units_(checked(units)), stream_(open_there(device)), memory_(device, stream_.get()) {}

  int device() const override { return device_; }
  u32 units() const override { return units_; }
  bool same_gpu() const override { return false; }
  u32 units_taken() const override { return 0; }
  memory_resource& memory() override { return memory_; }
  void* stream() const override { return stream_.get(); }

 private:
  static int checked(cuda_executor const& on, int device) {
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "ask", "the driver", "run penstock doctor");
    if (device >= devices) {
      throw_bad_input("start", "a resident kernel on GPU " + std::to_string(device),
                      "this machine has " + std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs") +
                          ", counted from 0: name one of them");
    }
    reach(device, on.gpu());
    reach(on.gpu(), device);
    return device;
  }

  u32 checked(u32 units) const {
    const u32 all = cuda_executor::units_of(device_);
    if (units > all) {
      throw_bad_input("start", "a resident kernel on " + std::to_string(units) + " SMs",
                      "GPU " + std::to_string(device_) + " has " + std::to_string(all) + ": ask for at most as many");
    }
    return units != 0 ? units : all / 3 + 1;
  }

  static cudaStream_t open_there(int device) {
    const gpu_scope here(device);
    return open_resident_stream(nullptr);
  }

  int device_;
  u32 units_;
  cuda_stream stream_;
  cuda_memory_resource memory_;
};

}  // namespace

std::unique_ptr<resident_place> make_resident_place(executor& on, int device, u32 units) {
  auto& cuda = dynamic_cast<cuda_executor&>(on);
  if (device < 0 || device == cuda.gpu()) return std::make_unique<place_beside>(cuda, units);
  return std::make_unique<place_on_peer>(cuda, device, units);
}

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

std::unique_ptr<executor> make_cuda_executor(executor_limits const& limits, int gpu, memory_resource* shared) {
  int there = 0;
  if (cudaGetDeviceCount(&there) == cudaSuccess && gpu >= there) {
    throw_bad_input("open", "GPU " + std::to_string(gpu), "there are " + std::to_string(there) + ", counted from 0");
  }
  const gpu_scope here(gpu);
  return std::make_unique<cuda_executor>(limits, shared);
}

}  // namespace penstock
