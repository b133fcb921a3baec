#include "penstock/host/error.hpp"
#include "registered_ranges.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace penstock {
namespace {

[[noreturn]] void refuse_other_address() {
  throw_bad_input("register", "host memory",
                  "this GPU sees it at another address than the host does: choose placement storage or hbm");
}

/// Pinned or registered, by whatever library, and seen by kernels where the host sees it.
bool is_host_memory(void* address) {
  cudaPointerAttributes about{};
  const bool known = cudaPointerGetAttributes(&about, address) == cudaSuccess && about.type == cudaMemoryTypeHost;
  cudaGetLastError();  // not sticky for later calls
  if (known && about.devicePointer != address) refuse_other_address();
  return known;
}

void pin(u64 begin, u64 end, bool writable) {
  auto* const address = reinterpret_cast<void*>(begin);
  const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped | (writable ? 0u : cudaHostRegisterReadOnly);
  const cudaError_t result = cudaHostRegister(address, end - begin, flags);
  if (result != cudaSuccess) {
    cudaGetLastError();  // or the next kernel's launch would be blamed for it
    throw error(error_kind::world,
                "register " + std::to_string(end - begin) + " bytes of host memory: " + cudaGetErrorString(result) +
                    ": raise the limit of locked memory (ulimit -l), or choose placement storage",
                result == cudaErrorMemoryAllocation ? ENOMEM : EIO);
  }
  void* seen = nullptr;
  if (cudaHostGetDevicePointer(&seen, address, 0) == cudaSuccess && seen == address) return;
  cudaGetLastError();
  cudaHostUnregister(address);
  refuse_other_address();
}

}  // namespace

registered_ranges& registered_ranges::all() {
  static registered_ranges the_pages;
  return the_pages;
}

bool registered_ranges::add(void* address, u64 bytes, bool writable) {
  const std::lock_guard lock(mutex_);
  const u64 begin = reinterpret_cast<u64>(address), end = begin + bytes;
  bool ours = false;
  each_of(begin, end, [&](piece const&) { ours = true; });
  if (!ours && is_host_memory(address)) {
    if (is_host_memory(static_cast<char*>(address) + bytes - 1)) return false;
    throw_bad_input("register", std::to_string(bytes) + " bytes of host memory",
                    "a part of it is pinned already: open the whole before its parts");
  }
  pin_gaps(begin, end, writable);
  each_of(begin, end, [](piece& p) { ++p.users; });
  return true;
}

void registered_ranges::remove(void* address, u64 bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const u64 begin = reinterpret_cast<u64>(address), end = begin + bytes;
  each_of(begin, end, [](piece& p) { --p.users; });
  drop_unused(begin, end);
}

/// The bytes of [begin, end) that no piece has become pieces, without users yet. On an exception nothing has changed.
void registered_ranges::pin_gaps(u64 begin, u64 end, bool writable) {
  std::vector<piece> made;
  const auto add = [&](u64 from, u64 to) {
    if (from >= to) return;
    pin(from, to, writable);
    made.push_back({from, to, 0});
  };
  try {
    u64 from = begin;
    each_of(begin, end, [&](piece const& p) {
      add(from, std::min(p.begin, end));
      from = std::max(from, p.end);
    });
    add(from, end);
  } catch (...) {
    for (piece const& p : made) cudaHostUnregister(reinterpret_cast<void*>(p.begin));
    throw;
  }
  pieces_.insert(pieces_.end(), made.begin(), made.end());
  std::sort(pieces_.begin(), pieces_.end(), [](piece const& a, piece const& b) { return a.begin < b.begin; });
}

void registered_ranges::drop_unused(u64 begin, u64 end) noexcept {
  std::erase_if(pieces_, [&](piece const& p) {
    if (p.users != 0 || p.begin >= end || p.end <= begin) return false;
    cudaHostUnregister(reinterpret_cast<void*>(p.begin));
    return true;
  });
  cudaGetLastError();  // of memory that its owner has unmapped since
}

}  // namespace penstock
