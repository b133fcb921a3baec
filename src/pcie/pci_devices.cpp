#include "hugepage_function.hpp"
#include "vfio_function.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pci_device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr char const* user_driver = "vfio-pci";

std::string text_of(fs::path const& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

u32 number_of(fs::path const& file) {
  return static_cast<u32>(std::strtoul(text_of(file).c_str(), nullptr, 0));  // 0 for what is no number
}

/// The name that a link of sysfs leads to; empty where there is none.
std::string target_of(fs::path const& link) {
  std::error_code none;
  const fs::path target = fs::read_symlink(link, none);
  return none ? "" : target.filename().string();
}

std::vector<std::string> names_in(fs::path const& folder) {
  std::vector<std::string> all;
  std::error_code none;
  for (auto const& each : fs::directory_iterator(folder, none)) all.push_back(each.path().filename().string());
  std::ranges::sort(all);
  return all;
}

void put_text(fs::path const& file, std::string const& text, std::string const& operation, std::string const& object) {
  errno = 0;
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw_os_error(operation, object, errno == 0 ? EIO : errno, "writing " + file.string() + " needs root");
}

/// Where each block device (by its name) is mounted.
std::map<std::string, std::string> mounts(fs::path const& proc) {
  std::map<std::string, std::string> all;
  std::ifstream in(proc / "self/mounts");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string device, folder;
    words >> device >> folder;
    if (device.starts_with("/dev/")) all[device.substr(5)] = folder;
  }
  return all;
}

/// The name by which programs have a namespace. Of a drive that may have several controllers, the kernel shows each one's path
/// to it ("nvme0c1n2"), and what is mounted is all of them together ("nvme0n2").
std::string block_device_of(std::string const& path) {
  const u64 first = path.find('c', 4), second = path.find('n', 4);
  return first < second && second != std::string::npos ? path.substr(0, first) + path.substr(second) : path;
}

/// The block devices of a drive: namespaces of its controller, as the kernel's driver names them.
std::vector<std::string> block_devices_of(fs::path const& device) {
  std::vector<std::string> all;
  for (std::string const& controller : names_in(device / "nvme")) {
    for (std::string const& name : names_in(device / "nvme" / controller)) {
      if (name.starts_with("nvme") && name.find('n', 4) != std::string::npos) all.push_back(block_device_of(name));
    }
  }
  return all;
}

std::string use_of(std::string device, char const* is, std::string const& what) { return device.append(is).append(what); }

std::vector<std::string> uses_of(std::vector<std::string> const& blocks, fs::path const& sysfs, fs::path const& proc) {
  const auto mounted = mounts(proc);
  std::vector<std::string> uses;
  const auto look_at = [&](std::string const& name, fs::path const& folder) {
    if (const auto at = mounted.find(name); at != mounted.end()) uses.push_back(use_of(name, " is mounted on ", at->second));
    for (std::string const& holder : names_in(folder / "holders")) uses.push_back(use_of(name, " is part of ", holder));
  };
  for (std::string const& block : blocks) {
    const fs::path folder = sysfs / "class/block" / block;
    look_at(block, folder);
    for (std::string const& part : names_in(folder)) {
      if (!part.starts_with(block)) continue;
      uses.push_back(use_of(block, " has partition ", part));
      look_at(part, folder / part);
    }
  }
  return uses;
}

pci_device look_at(fs::path const& folder, fs::path const& sysfs, fs::path const& proc) {
  pci_device found;
  found.address = folder.filename().string();
  found.vendor = number_of(folder / "vendor");
  found.device = number_of(folder / "device");
  found.class_code = number_of(folder / "class");
  found.driver = target_of(folder / "driver");
  found.iommu_group = target_of(folder / "iommu_group");
  found.group_others = names_in(folder / "iommu_group/devices");
  std::erase(found.group_others, found.address);
  const std::string speed = text_of(folder / "current_link_speed");
  if (!speed.empty()) {
    found.link = speed + " x" + text_of(folder / "current_link_width") + " of " + text_of(folder / "max_link_speed") + " x" +
                 text_of(folder / "max_link_width");
  }
  const std::string node = text_of(folder / "numa_node");
  found.numa_node = node.empty() ? -1 : static_cast<int>(std::strtol(node.c_str(), nullptr, 10));
  found.block_devices = block_devices_of(folder);
  found.uses = uses_of(found.block_devices, sysfs, proc);
  return found;
}

fs::path devices(std::string const& sysfs) { return fs::path(sysfs) / "bus/pci/devices"; }

/// Takes it from whoever has it, and lets the kernel look for a driver: the one that is named, or any if none is.
void hand_over(pci_device const& device, std::string const& driver, std::string const& sysfs) {
  const fs::path folder = devices(sysfs) / device.address;
  const std::string operation = driver.empty() ? "give back" : "bind";
  put_text(folder / "driver_override", driver + "\n", operation, device.address);
  if (!device.driver.empty()) put_text(folder / "driver/unbind", device.address, operation, device.address);
  put_text(fs::path(sysfs) / "bus/pci/drivers_probe", device.address, operation, device.address);
}

}  // namespace

std::vector<pci_device> list_nvme_devices(std::string const& sysfs, std::string const& proc) {
  std::vector<pci_device> all;
  for (std::string const& address : names_in(devices(sysfs))) {
    pci_device each = look_at(devices(sysfs) / address, sysfs, proc);
    if (each.nvme()) all.push_back(std::move(each));
  }
  return all;
}

pci_device find_nvme_device(std::string const& address, std::string const& sysfs, std::string const& proc) {
  const fs::path folder = devices(sysfs) / address;
  if (address.empty() || address.find('/') != std::string::npos || !fs::exists(folder)) {
    throw_bad_input("open", "PCI device " + address, "there is none: `penstock nvme list` shows those that there are");
  }
  pci_device found = look_at(folder, sysfs, proc);
  if (!found.nvme()) {
    throw_bad_input("open", "PCI device " + address,
                    "it is no NVMe controller: `penstock nvme list` shows those that there are");
  }
  return found;
}

void give_to_vfio(std::string const& address, bool force, std::string const& sysfs, std::string const& proc) {
  const pci_device device = find_nvme_device(address, sysfs, proc);
  if (device.driver == user_driver) return;
  if (!device.uses.empty() && !force) {
    throw_bad_input("bind", address, device.uses.front() + ": end that use first, or force it and lose what is not written");
  }
  if (device.iommu_group.empty()) {
    throw_bad_input("bind", address,
                    "this machine has no IOMMU, or it is off (intel_iommu=on, amd_iommu=on): vfio-pci cannot guard its memory");
  }
  if (!fs::exists(fs::path(sysfs) / "bus/pci/drivers" / user_driver)) {
    throw_bad_input("bind", address, "the kernel's vfio-pci is not loaded: modprobe vfio-pci");
  }
  hand_over(device, user_driver, sysfs);
  const std::string driver = target_of(devices(sysfs) / address / "driver");
  if (driver != user_driver) {
    throw_os_error("bind", address, EBUSY, "vfio-pci did not take it: the kernel's log says why");
  }
}

void give_to_kernel(std::string const& address, std::string const& sysfs) {
  const pci_device device = find_nvme_device(address, sysfs);
  if (device.driver == user_driver || device.driver.empty()) hand_over(device, "", sysfs);
}

std::unique_ptr<pci_function> open_pci_function(std::string const& address, u64 hugepage_bytes) {
  const pci_device device = find_nvme_device(address);
  if (device.driver == user_driver) return pcie::open_vfio_function(device);
  if (!device.driver.empty()) {
    throw_bad_input("open", "PCI device " + address,
                    "the kernel's driver " + device.driver + " has it: `penstock nvme bind " + address + "` takes it away");
  }
  if (!device.iommu_group.empty()) {
    throw_bad_input("open", "PCI device " + address,
                    "no driver has it: `penstock nvme bind " + address + "` gives it to vfio-pci");
  }
  return pcie::open_hugepage_function(device, hugepage_bytes);
}

}  // namespace penstock
