// How a drive gets from the kernel to this program: `penstock nvme bind`.
#pragma once

#include <string>

namespace penstock::drive {

/// Where the kernel tells of its devices.
struct kernel_files {
  std::string sysfs = "/sys";
  std::string proc = "/proc";
};

/// Gives a drive to vfio-pci; on a machine without an IOMMU, which that one refuses, takes it from its driver and leaves it to
/// nobody. A drive that is where it should be is left there. Throws penstock::error: bad_input for uses of it unless `force`;
/// world without the right to do it.
void take_drive(std::string const& address, bool force, kernel_files const& at = {});

}  // namespace penstock::drive
