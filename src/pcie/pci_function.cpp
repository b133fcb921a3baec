#include "penstock/pcie/pci_function.hpp"

#include "penstock/host/error.hpp"

namespace penstock {

void pci_function::map_peer(void*, u64 bytes, int) {
  throw_bad_input("map", std::to_string(bytes) + " bytes of a GPU's memory for PCI device " + name(),
                  "that takes vfio-pci behind an IOMMU: what the device finds at an address is the machine's own choice here");
}

}  // namespace penstock
