// A function that vfio-pci has: registers through its BAR, memory through the IOMMU.
#pragma once

#include "penstock/pcie/pci_device.hpp"

namespace penstock::pcie {

/// Throws penstock::error with the remedy: no permission, a group with other devices, IOMMU without safe interrupts.
std::unique_ptr<pci_function> open_vfio_function(pci_device const& device);

}  // namespace penstock::pcie
