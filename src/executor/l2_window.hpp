// A window of L2 for memory that the kernels of a stream use again and again.
#pragma once

#include "cuda_calls.hpp"
#include "penstock/executor/gpu_scope.hpp"

#include <algorithm>
#include <string>

namespace penstock {

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

}  // namespace penstock
