#include "cpu_executor.hpp"
#include "cuda_executor.hpp"
#include "numa_scope.hpp"
#include "peer_memory.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/host/error.hpp"
#include "registered_ranges.hpp"
#include "resident_place.hpp"
#include "sm_partition.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace penstock {
namespace {

void check(cudaError_t result, std::string const& operation, std::string const& object, char const* remedy) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // or the next kernel's launch would be blamed for it
  throw error(error_kind::world, operation + " " + object + ": " + cudaGetErrorString(result) + ": " + remedy,
              result == cudaErrorMemoryAllocation ? ENOMEM : EIO);
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

int device_attribute(cudaDeviceAttr which, int device) {
  int result = 0;
  check(cudaDeviceGetAttribute(&result, which, device), "ask", "GPU " + std::to_string(device), "run penstock doctor");
  return result;
}

/// The NUMA node whose memory is nearest to a GPU; -1 where the system has none, or the driver does not say.
int host_node(int device) {
  int node = -1;
  if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, device) == cudaSuccess) return node;
  cudaGetLastError();  // not sticky for later calls
  return -1;
}

/// As long as this lives its thread may allocate, although a stream is being captured: no part of the graph.
class outside_of_capture {
 public:
  outside_of_capture() { cudaThreadExchangeStreamCaptureMode(&before_); }
  outside_of_capture(outside_of_capture const&) = delete;
  outside_of_capture& operator=(outside_of_capture const&) = delete;
  ~outside_of_capture() { cudaThreadExchangeStreamCaptureMode(&before_); }

 private:
  cudaStreamCaptureMode before_ = cudaStreamCaptureModeRelaxed;
};

// Local memory is one GPU's HBM; shared memory is pinned host memory, which all kernels reach at the same address: CUDA's own,
// or somebody else's (a device's), registered as it is handed out.
class cuda_memory_resource final : public memory_resource {
 public:
  cuda_memory_resource(int device, cudaStream_t stream, memory_resource* shared = nullptr)
      : device_(device), stream_(stream), shared_(shared) {}

  void* allocate(memory_kind kind, u64 bytes) override {
    const gpu_scope here(device_);
    const outside_of_capture allowed;
    void* address = nullptr;
    const std::string size = std::to_string(bytes) + " bytes";
    if (kind == memory_kind::local) {
      if (open_to_peer_) {
        address = open_to_peer_->allocate(bytes);
      } else {
        check(cudaMalloc(&address, bytes), "allocate", size + " of GPU memory", "ask for a smaller cache");
      }
      check(cudaMemsetAsync(address, 0, bytes, stream_), "clear", size + " of GPU memory", "the GPU is in trouble");
      check(cudaStreamSynchronize(stream_), "clear", size + " of GPU memory", "the GPU is in trouble");
    } else if (shared_ != nullptr) {
      return allocate_registered(bytes);
    } else {
      const numa_scope near(host_node(device_));  // or each access crosses the link between the sockets, too
      check(cudaHostAlloc(&address, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "pin", size + " of host memory",
            "ask for fewer queues or raise the limit of locked memory (ulimit -l)");
      std::fill_n(static_cast<char*>(address), bytes, char{0});
    }
    return address;
  }

  void deallocate(memory_kind kind, void* address, u64 bytes) noexcept override {
    if (kind == memory_kind::local) {
      if (open_to_peer_ && open_to_peer_->deallocate(address, bytes)) return;
      cudaFree(address);
    } else if (shared_ != nullptr) {
      cudaHostUnregister(address);
      shared_->deallocate(kind, address, bytes);
    } else {
      cudaFreeHost(address);
    }
  }

  bool register_host(void* address, u64 bytes, bool writable) override {
    const gpu_scope here(device_);
    return registered_ranges::all().add(address, bytes, writable);
  }
  registers_for_kernels map_registers(void* address, u64 bytes) override {
    const gpu_scope here(device_);
    constexpr unsigned flags = cudaHostRegisterIoMemory | cudaHostRegisterMapped | cudaHostRegisterPortable;
    void* seen = nullptr;
    cudaError_t result = cudaHostRegister(address, bytes, flags);
    if (result == cudaSuccess) {
      result = cudaHostGetDevicePointer(&seen, address, 0);
      if (result == cudaSuccess) return {static_cast<std::byte*>(seen), ""};
      cudaHostUnregister(address);
    }
    cudaGetLastError();  // not sticky for later calls
    return {nullptr, std::string("CUDA does not map them (cudaHostRegisterIoMemory): ") + cudaGetErrorString(result)};
  }
  void unmap_registers(void* address) noexcept override { cudaHostUnregister(address); }

  std::string open_to(peer_mapper& device) override {
    std::string reason;
    open_to_peer_ = open_peer_memory(device_, device, reason);
    return reason;
  }

  u64 free_bytes() const override {
    const gpu_scope here(device_);
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "ask", "the GPU", "run penstock doctor");
    return free;
  }
  void unregister_host(void* address, u64 bytes) noexcept override { registered_ranges::all().remove(address, bytes); }

  void write(void* to, void const* from, u64 bytes) override { copy(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { copy(to, from, bytes); }

 private:
  void* allocate_registered(u64 bytes) {
    void* const address = shared_->allocate(memory_kind::shared, bytes);
    try {
      check(cudaHostRegister(address, round_up(bytes, 4096), cudaHostRegisterPortable | cudaHostRegisterMapped), "register",
            std::to_string(bytes) + " bytes of a device's memory", "raise the limit of locked memory (ulimit -l)");
      void* seen = nullptr;
      if (cudaHostGetDevicePointer(&seen, address, 0) != cudaSuccess || seen != address) {
        cudaHostUnregister(address);
        throw_bad_input("register", std::to_string(bytes) + " bytes of a device's memory",
                        "this GPU sees it at another address than the device does: drive the device from the cpu executor");
      }
    } catch (error const&) {
      cudaGetLastError();  // not sticky for later calls
      shared_->deallocate(memory_kind::shared, address, bytes);
      throw;
    }
    return address;
  }

  /// What this process has registered: arrays over one piece of memory, or over parts of it, share it.
  void copy(void* to, void const* from, u64 bytes) {
    const std::string size = std::to_string(bytes) + " bytes";
    const gpu_scope here(device_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy", size, "see the kernel before it");
    check(cudaStreamSynchronize(stream_), "copy", size, "see the kernel before it");
  }

  int device_;
  cudaStream_t stream_;
  memory_resource* shared_;                  ///< null: CUDA's own
  std::unique_ptr<slab_pool> open_to_peer_;  ///< of local memory; null: no device reaches that
};

/// A part of L2 set aside for lines that a stream is told to keep. The limit is the device's: what was there comes back.
class l2_window {
 public:
  l2_window(int device, cudaStream_t stream) : device_(device), stream_(stream) {}
  l2_window(l2_window const&) = delete;
  l2_window& operator=(l2_window const&) = delete;
  ~l2_window() { close(); }

  /// Bytes that may stay.
  u64 open(void const* address, u64 bytes) {
    close();
    const gpu_scope here(device_);
    const auto room = static_cast<u64>(device_attribute(cudaDevAttrMaxPersistingL2CacheSize, device_));
    const u64 seen = std::min(bytes, static_cast<u64>(device_attribute(cudaDevAttrMaxAccessPolicyWindowSize, device_)));
    const u64 kept = std::min(seen, room);
    if (kept == 0) return 0;
    check(cudaDeviceGetLimit(&limit_before_, cudaLimitPersistingL2CacheSize), "ask", "L2", "leave the window out");
    check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, kept), "set aside", std::to_string(kept) + " bytes of L2",
          "leave the window out");
    address_ = address;
    set({const_cast<void*>(address), seen, static_cast<float>(kept) / static_cast<float>(seen), cudaAccessPropertyPersisting,
         cudaAccessPropertyNormal});
    return kept;
  }

  void forget(void const* address) noexcept {
    if (address == address_) close();
  }

 private:
  void set(cudaAccessPolicyWindow const& window) {
    cudaStreamAttrValue value{};
    value.accessPolicyWindow = window;
    check(cudaStreamSetAttribute(stream_, cudaStreamAttributeAccessPolicyWindow, &value), "open", "a window of L2",
          "leave it out");
  }

  void close() noexcept {
    if (address_ == nullptr) return;
    const gpu_scope here(device_);
    address_ = nullptr;
    cudaStreamAttrValue none{};
    none.accessPolicyWindow.hitProp = cudaAccessPropertyNormal;
    none.accessPolicyWindow.missProp = cudaAccessPropertyNormal;
    cudaStreamSetAttribute(stream_, cudaStreamAttributeAccessPolicyWindow, &none);
    cudaCtxResetPersistingL2Cache();
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, limit_before_);
    cudaGetLastError();  // a kernel before it may have failed: that is told elsewhere
  }

  int device_;
  cudaStream_t stream_;
  void const* address_ = nullptr;  ///< null: none is open
  std::size_t limit_before_ = 0;
};

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
