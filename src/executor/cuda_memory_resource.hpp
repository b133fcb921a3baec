// Memory of the CUDA executor.
#pragma once

#include "cuda_calls.hpp"
#include "memory_parts.hpp"
#include "numa_scope.hpp"
#include "peer_memory.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/executor/outside_of_capture.hpp"
#include "registered_ranges.hpp"

#include <algorithm>
#include <memory>
#include <string>

namespace penstock {

/// The NUMA node whose memory is nearest to a GPU; -1 where the system has none, or the driver does not say.
inline int host_node(int device) {
  int node = -1;
  if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, device) == cudaSuccess) return node;
  cudaGetLastError();  // not sticky for later calls
  return -1;
}

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

  int make_part(u64 bytes) override { return memory_parts::make(device_, bytes); }
  std::byte* map_parts(std::span<memory_part const> parts) override { return memory_parts::map(device_, parts); }
  void unmap_parts(std::byte* begin, std::span<memory_part const> parts) noexcept override {
    const gpu_scope here(device_);
    const outside_of_capture allowed;
    cudaDeviceSynchronize();
    memory_parts::unmap(begin, parts);
  }
  std::string place() const override { return memory_parts::name_of(device_); }
  std::string no_fast_link_to(std::string const& place) const override { return memory_parts::no_fast_link(device_, place); }

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

}  // namespace penstock
