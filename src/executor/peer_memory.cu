#include "peer_memory.hpp"

#include "../host/owned_file.hpp"
#include "driver_function.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/executor/gpu_scope.hpp"

namespace penstock {
namespace {

constexpr u64 slab_bytes = u64{64} << 20;
constexpr u64 granule = u64{2} << 20;  ///< of a GPU's memory: an export begins and ends with whole ones

[[noreturn]] void fail(u64 bytes, std::string const& why, char const* remedy) {
  throw error(error_kind::world, "open to a drive " + std::to_string(bytes) + " bytes of GPU memory: " + why + ": " + remedy,
              EIO);
}

template <class Function>
Function* find(char const* name, unsigned version) {
  return driver_function<Function>(name, version, "open a GPU's memory to a drive", "update it to one for CUDA 12 or newer");
}

/// A descriptor that stands for memory of the GPU (CUDA driver API, "Virtual Memory Management", dma-buf).
owned_file export_memory(void* address, u64 bytes) {
  int file = -1;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  const auto get = find<decltype(cuMemGetHandleForAddressRange)>("cuMemGetHandleForAddressRange", 11070);
  const CUresult result = get(&file, at, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (result != CUDA_SUCCESS) {
    fail(bytes, "CUDA does not export it as a dma-buf (error " + std::to_string(static_cast<int>(result)) + ")",
         "it takes NVIDIA's open kernel modules, and a GPU that offers it to others");
  }
  return owned_file(file);
}

/// What the device writes and what CUDA copies to the same memory then follow each other (CUDA, "GPUDirect RDMA", sync memops).
void order_copies(void* address) {
  unsigned yes = 1;
  find<decltype(cuPointerSetAttribute)>("cuPointerSetAttribute", 6000)(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                                       reinterpret_cast<CUdeviceptr>(address));
}

void* take(int gpu, peer_mapper& device, u64 bytes) {
  const gpu_scope here(gpu);
  const u64 size = round_up(bytes, granule);
  void* slab = nullptr;
  const cudaError_t result = cudaMalloc(&slab, size);
  if (result != cudaSuccess) fail(size, cudaGetErrorString(result), "ask for a smaller cache");
  try {
    if (reinterpret_cast<u64>(slab) % slab_pool::page != 0) fail(size, "it begins within a page", "use another driver");
    order_copies(slab);
    device.map_peer(slab, size, export_memory(slab, size).get());
  } catch (...) {
    cudaFree(slab);
    throw;
  }
  return slab;
}

}  // namespace

std::unique_ptr<slab_pool> open_peer_memory(int gpu, peer_mapper& device, std::string& reason) {
  int ordering = cudaGPUDirectRDMAWritesOrderingNone;
  cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, gpu);
  if (ordering < cudaGPUDirectRDMAWritesOrderingOwner) {
    reason = "this GPU may see a drive's completion before the data that went ahead of it (CUDA: writes ordering none)";
    return nullptr;
  }
  try {
    auto pool = std::make_unique<slab_pool>(slab_bytes,
                                            slab_pool::source{[gpu, &device](u64 bytes) { return take(gpu, device, bytes); },
                                                              [&device](void* slab) {
                                                                device.unmap_peer(slab);
                                                                cudaFree(slab);
                                                              }});
    pool->deallocate(pool->allocate(slab_pool::page), slab_pool::page);  // the first slab, which stays: so it can be
    return pool;
  } catch (error const& problem) {
    reason = problem.what();
    return nullptr;
  }
}

}  // namespace penstock
