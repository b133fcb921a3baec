// The BARs of a function other than the one with its registers, mapped when they are first stored to.
#pragma once

#include "mapped_registers.hpp"

#include "penstock/host/error.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace penstock::pcie {

/// Thread-safe.
class bar_windows {
 public:
  using open_fn = std::function<std::unique_ptr<mapped_registers>(u32 bar)>;

  /// `open` gives nothing for a BAR that cannot be mapped.
  explicit bar_windows(open_fn open) : open_(std::move(open)) {}

  bool write(u32 bar, u64 offset, void const* from, u64 bytes) {
    mapped_registers* const window = find(bar);
    if (window == nullptr || offset > window->bytes() || bytes > window->bytes() - offset) return false;
    return window->write(offset, from, bytes);
  }

 private:
  mapped_registers* find(u32 bar) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = windows_.try_emplace(bar);
    try {
      if (fresh) at->second = open_(bar);
    } catch (error const&) {}  // a BAR that is not mapped is told by write
    return at->second.get();
  }

  open_fn open_;
  std::mutex mutex_;
  std::map<u32, std::unique_ptr<mapped_registers>> windows_;
};

}  // namespace penstock::pcie
