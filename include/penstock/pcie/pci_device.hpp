// The NVMe drives of this machine, as PCI devices: which there are, their drivers, and how this process gets hold of one.
#pragma once

#include "penstock/pcie/pci_function.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// What sysfs says of a device.
struct pci_device {
  std::string address;  ///< "0000:01:00.0"
  u32 vendor = 0;
  u32 device = 0;
  u32 class_code = 0;                      ///< 0x010802 for NVMe
  std::string driver;                      ///< "nvme", "vfio-pci"; empty: none
  std::string iommu_group;                 ///< its number; empty: no IOMMU, so a device reaches all memory
  std::vector<std::string> group_others;   ///< addresses of the other devices in that group
  std::string link;                        ///< "16.0 GT/s PCIe x4 of 16.0 GT/s PCIe x4": now, and the most it could have
  int numa_node = -1;                      ///< the socket that it hangs on; -1: unknown, or there is one
  std::vector<std::string> block_devices;  ///< of the kernel: "nvme0n1"
  std::vector<std::string> uses;           ///< what they are in use for: "nvme0n1p1 is mounted on /home"

  bool nvme() const { return class_code == 0x010802; }
};

/// By address. `sysfs` and `proc`: where these are mounted.
std::vector<pci_device> list_nvme_devices(std::string const& sysfs = "/sys", std::string const& proc = "/proc");

/// Throws penstock::error (bad_input) where there is no such device, or it is no NVMe controller.
pci_device find_nvme_device(std::string const& address, std::string const& sysfs = "/sys", std::string const& proc = "/proc");

/// Takes a device from its driver and gives it to vfio-pci, so that a process may drive it; back to the kernel's driver. Both
/// need root, and throw penstock::error that says what stands in the way: for `give_to_vfio`, uses of the device unless `force`
/// (bad_input), and vfio-pci not loaded. A device that is where it should be is left there.
void give_to_vfio(std::string const& address, bool force, std::string const& sysfs = "/sys", std::string const& proc = "/proc");
void give_to_kernel(std::string const& address, std::string const& sysfs = "/sys");

/// Opens a device that vfio-pci has (memory: what is allocated, and nothing else, is mapped for it), or, on a machine without
/// an IOMMU, one that no driver has, through sysfs and 2 MiB pages of `hugepage_bytes`: it then reaches all of the machine's
/// memory, and this needs root. Throws penstock::error with the remedy where neither can be.
std::unique_ptr<pci_function> open_pci_function(std::string const& address, u64 hugepage_bytes = u64{256} << 20);

}  // namespace penstock
