// A PCI Express function that is an NVMe controller, as its driver sees it: registers, and memory that the device reaches. The
// way to them (VFIO, sysfs, an emulator's socket) is behind this.
#pragma once

#include "penstock/executor/memory.hpp"

#include <span>
#include <string>

namespace penstock {

/// Thread-safe.
class pci_function : public peer_mapper {
 public:
  /// For people: "0000:01:00.0".
  virtual std::string name() const = 0;

  /// Size of BAR 0.
  virtual u64 register_bytes() const = 0;

  /// A register of 32 bits. All ones where the function is gone; what is written there then is lost, as on the bus itself.
  /// REQUIRES: offset is a multiple of 4, and within BAR 0.
  virtual u32 read(u64 offset) = 0;
  virtual void write(u64 offset, u32 value) = 0;

  /// BAR 0 as memory of this process, where it is that.
  virtual std::span<std::byte> register_window() { return {}; }

  /// Stores to memory of the device's own, behind one of its BARs. False where that is not had, or the function is gone.
  /// REQUIRES: all are multiples of 4, and within the BAR.
  virtual bool write_memory(u32 /*bar*/, u64 /*offset*/, void const* /*from*/, u64 /*bytes*/) { return false; }

  /// Memory that the device reaches, for rings and data. A bus address is the address that this process has for it, so device
  /// code never translates: the mapping is made that way.
  virtual memory_resource& memory() = 0;
  virtual bool reaches(void const* address, u64 bytes) const = 0;

  /// Memory of a GPU (peer_mapper). Here: no.
  void map_peer(void* address, u64 bytes, int dma_buf) override;
  void unmap_peer(void* /*address*/) noexcept override {}

  /// Whether the machine asks for the device back: an orderly unplug, or a driver that is unbound while it is in use. Stays so.
  virtual bool removal_requested() { return false; }

  /// Resets the function (FLR), so that it makes no more access to memory. Throws penstock::error (world) where that cannot be.
  virtual void reset() = 0;
};

}  // namespace penstock
