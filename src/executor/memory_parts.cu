#include "memory_parts.hpp"

#include "../host/owned_file.hpp"
#include "driver_function.hpp"

#include "penstock/executor/gpu_scope.hpp"

namespace penstock::memory_parts {
namespace {

constexpr char const* remedy = "keep rows without peers";

template <class Function>
Function* find(char const* name, unsigned version = 10020) {
  return driver_function<Function>(name, version, "share a GPU's memory", remedy);
}

[[noreturn]] void fail(u64 bytes, char const* what, CUresult result) {
  char const* text = nullptr;
  find<decltype(cuGetErrorString)>("cuGetErrorString", 6000)(result, &text);
  const bool full = result == CUDA_ERROR_OUT_OF_MEMORY;
  throw error(error_kind::world,
              "share " + std::to_string(bytes) + " bytes of GPU memory: " + what + ": " +
                  (text != nullptr ? text : "error " + std::to_string(static_cast<int>(result))) + ": " +
                  (full ? "keep fewer rows" : remedy),
              full ? ENOMEM : EIO);
}

void check(CUresult result, u64 bytes, char const* what) {
  if (result != CUDA_SUCCESS) fail(bytes, what, result);
}

CUmemGenericAllocationHandle imported(memory_part const& part) {
  CUmemGenericAllocationHandle handle{};
  // CUDA takes the descriptor as a pointer.
  void* const file = reinterpret_cast<void*>(static_cast<std::uintptr_t>(part.file));
  check(find<decltype(cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
            &handle, file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        part.bytes, "a part of another process is refused");
  return handle;
}

void release(CUmemGenericAllocationHandle handle) { find<decltype(cuMemRelease)>("cuMemRelease")(handle); }

/// The number of the GPU with this UUID, or -1.
int gpu_at(std::string const& place) {
  int count = 0;
  cudaGetDeviceCount(&count);
  for (int k = 0; k < count; ++k) {
    if (name_of(k) == place) return k;
  }
  return -1;
}

}  // namespace

int make(int gpu, u64 bytes) {
  const gpu_scope here(gpu);
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  CUmemGenericAllocationHandle handle{};
  check(find<decltype(cuMemCreate)>("cuMemCreate")(&handle, bytes, &kind, 0), bytes, "there is no room");
  int file = -1;
  const CUresult exported = find<decltype(cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
      &file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  release(handle);  // the descriptor keeps it
  check(exported, bytes, "CUDA gives no descriptor for it");
  return file;
}

std::byte* map(int gpu, std::span<memory_part const> parts) {
  const gpu_scope here(gpu);
  u64 all = 0;
  for (memory_part const& each : parts) all += each.bytes;
  CUdeviceptr begin = 0;
  check(find<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&begin, all, memory_resource::part_granule, 0, 0), all,
        "there are no addresses for it");
  const auto map_part = find<decltype(cuMemMap)>("cuMemMap");
  auto* const mapped = reinterpret_cast<std::byte*>(begin);
  u64 done = 0, count = 0;
  try {
    for (memory_part const& each : parts) {
      const CUmemGenericAllocationHandle handle = imported(each);
      const CUresult result = map_part(begin + done, each.bytes, 0, handle, 0);
      release(handle);  // the mapping keeps it
      check(result, each.bytes, "it is not mapped");
      done += each.bytes;
      ++count;
    }
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check(find<decltype(cuMemSetAccess)>("cuMemSetAccess")(begin, all, &access, 1), all, "kernels do not reach it");
  } catch (...) {
    const auto unmap_part = find<decltype(cuMemUnmap)>("cuMemUnmap");
    u64 at = 0;
    for (memory_part const& each : parts.first(count)) {
      unmap_part(begin + at, each.bytes);
      at += each.bytes;
    }
    find<decltype(cuMemAddressFree)>("cuMemAddressFree")(begin, all);
    throw;
  }
  return mapped;
}

void unmap(std::byte* begin, std::span<memory_part const> parts) noexcept {
  const auto first = reinterpret_cast<CUdeviceptr>(begin);
  const auto unmap_part = find<decltype(cuMemUnmap)>("cuMemUnmap");
  u64 all = 0;
  for (memory_part const& each : parts) {
    unmap_part(first + all, each.bytes);
    all += each.bytes;
  }
  find<decltype(cuMemAddressFree)>("cuMemAddressFree")(first, all);
}

std::string name_of(int gpu) {
  cudaDeviceProp about{};
  if (cudaGetDeviceProperties(&about, gpu) != cudaSuccess) {
    cudaGetLastError();  // not sticky for later calls
    return "";
  }
  constexpr char digits[] = "0123456789abcdef";
  std::string name = "gpu-";
  for (const char each : about.uuid.bytes) {
    const auto byte = static_cast<unsigned char>(each);
    name += {digits[byte >> 4], digits[byte & 15]};
  }
  return name;
}

std::string no_fast_link(int gpu, std::string const& place) {
  const int other = gpu_at(place);
  if (other < 0) return "this process does not see that GPU (CUDA_VISIBLE_DEVICES)";
  if (other == gpu) return "";
  int reached = 0, fast = 0;
  cudaDeviceGetP2PAttribute(&reached, cudaDevP2PAttrAccessSupported, gpu, other);
  cudaDeviceGetP2PAttribute(&fast, cudaDevP2PAttrNativeAtomicSupported, gpu, other);
  cudaGetLastError();  // not sticky for later calls
  if (reached == 0) return "CUDA lets neither GPU read the other's memory";
  if (fast == 0) return "the link between them is PCIe, no faster than that to the host";
  return "";
}

}  // namespace penstock::memory_parts
