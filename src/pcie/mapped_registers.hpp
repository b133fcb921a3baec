// BAR 0 as memory of this process. A function that vanishes, or whose memory space is turned off, makes an access a bus error:
// here it reads as all ones.
#pragma once

#include "penstock/core/config.hpp"

#include <span>
#include <string>

namespace penstock::pcie {

/// Thread-safe.
class mapped_registers {
 public:
  /// Maps `bytes` of `file` from `offset` on. Throws penstock::error (world).
  mapped_registers(int file, u64 offset, u64 bytes, std::string const& owner);
  mapped_registers(mapped_registers const&) = delete;
  mapped_registers& operator=(mapped_registers const&) = delete;
  ~mapped_registers();

  u64 bytes() const { return bytes_; }
  std::span<std::byte> mapped() const { return {address_, bytes_}; }
  u32 read(u64 offset);
  void write(u64 offset, u32 value);
  /// Words in their order; false where they are out of reach.
  bool write(u64 offset, void const* from, u64 bytes);

 private:
  std::byte* address_ = nullptr;
  u64 bytes_ = 0;
};

}  // namespace penstock::pcie
