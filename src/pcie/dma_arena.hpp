// One piece of memory that a device reaches, given out in parts: a memory resource over a range whose bus addresses are the
// addresses of this process.
#pragma once

#include "penstock/host/memory.hpp"

#include <map>
#include <mutex>

namespace penstock::pcie {

/// First fit, in pages. Thread-safe.
class dma_arena final : public memory_resource {
 public:
  /// `owner` names it in messages. REQUIRES: page-aligned, and outlives the arena.
  dma_arena(std::byte* begin, u64 bytes, std::string owner);

  void* allocate(memory_kind kind, u64 bytes) override;
  void deallocate(memory_kind kind, void* address, u64 bytes) noexcept override;
  void write(void* to, void const* from, u64 bytes) override;
  void read(void* to, void const* from, u64 bytes) override;

  bool holds(void const* address, u64 bytes) const;
  u64 bytes_free() const;

 private:
  std::byte* begin_;
  u64 bytes_;
  std::string owner_;
  mutable std::mutex mutex_;
  std::map<u64, u64> free_;  ///< bytes by offset; no two touch
};

}  // namespace penstock::pcie
