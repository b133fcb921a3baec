// A function on a machine without an IOMMU: registers through sysfs, and huge pages, which stay where they are in physical
// memory and are mapped here at the addresses that they have there.
#pragma once

#include "penstock/pcie/pci_device.hpp"

namespace penstock::pcie {

/// Throws penstock::error with the remedy: no root, no huge pages.
std::unique_ptr<pci_function> open_hugepage_function(pci_device const& device, u64 bytes);

}  // namespace penstock::pcie
