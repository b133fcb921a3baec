// What a device behind an IOMMU finds at its addresses: the kernel's two ways to say so, VFIO's containers and iommufd.
#pragma once

#include "penstock/pcie/pci_device.hpp"

#include "../host/owned_file.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace penstock::pcie {

/// Memory for a device is mapped in whole pages of this many bytes.
constexpr u64 dma_page = 4096;

/// Thread-safe.
class dma_space {
 public:
  virtual ~dma_space() = default;

  /// Bus addresses that can be mapped: [first, last]; none: not known, and 48 bits of them are taken for granted.
  virtual std::vector<std::pair<u64, u64>> usable() const = 0;

  /// Lets the device reach memory of this process at the address that it has here; false with errno set. Both: whole pages.
  virtual bool map(void* address, u64 bytes) = 0;
  virtual void unmap(void* address, u64 bytes) noexcept = 0;

  /// The same for what a dma-buf stands for. Throws penstock::error with the remedy.
  virtual void map_peer(void* address, u64 bytes, int dma_buf) = 0;
  virtual void unmap_peer(void* address, u64 bytes) noexcept = 0;
};

/// A device, and the space that it has. The space is let go of first.
struct vfio_device {
  owned_file file;
  std::unique_ptr<dma_space> space;
};

/// Through /dev/vfio/GROUP and a container. Throws penstock::error with the remedy.
vfio_device open_in_container(pci_device const& device);

/// Through /dev/vfio/devices and /dev/iommu, or nothing where the kernel (before 6.6, or built without) has no such way, or
/// this user has not and may have the other. Throws penstock::error with the remedy where it fails.
std::unique_ptr<vfio_device> open_in_iommufd(pci_device const& device);

}  // namespace penstock::pcie
