// Pieces of memory that a device reaches, given out in parts: a memory resource over ranges whose bus addresses are the
// addresses of this process.
#pragma once

#include "../host/address_ranges.hpp"

#include "penstock/executor/memory.hpp"

#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace penstock::pcie {

/// First fit, in pages. Thread-safe.
class dma_arena final : public memory_resource {
 public:
  /// `owner` names it in messages. Pieces that touch are one. REQUIRES: page-aligned, disjoint, and outlive the arena.
  dma_arena(std::vector<std::span<std::byte>> const& pieces, std::string owner);

  void* allocate(memory_kind kind, u64 bytes) override;
  void deallocate(memory_kind kind, void* address, u64 bytes) noexcept override;
  void write(void* to, void const* from, u64 bytes) override;
  void read(void* to, void const* from, u64 bytes) override;

  bool holds(void const* address, u64 bytes) const;
  u64 bytes_free() const;

 private:
  std::string owner_;
  address_ranges all_;
  mutable std::mutex mutex_;
  address_ranges free_;  ///< under mutex_
};

}  // namespace penstock::pcie
