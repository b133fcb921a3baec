#include "libs/drive/take_drive.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pci_device.hpp"

#include <cerrno>
#include <fstream>

namespace penstock::drive {

void take_drive(std::string const& address, bool force, kernel_files const& at) {
  const pci_device device = find_nvme_device(address, at.sysfs, at.proc);
  if (!device.iommu_group.empty()) return give_to_vfio(address, force, at.sysfs, at.proc);
  if (device.driver.empty()) return;
  if (!device.uses.empty() && !force) {
    throw_bad_input("bind", address, device.uses.front() + ": end that use first, or force it and lose what is not written");
  }
  const std::string file = at.sysfs + "/bus/pci/devices/" + address + "/driver/unbind";
  errno = 0;
  std::ofstream out(file);
  out << address << std::flush;
  if (!out) throw_os_error("bind", address, errno == 0 ? EIO : errno, "writing " + file + " needs root");
}

}  // namespace penstock::drive
