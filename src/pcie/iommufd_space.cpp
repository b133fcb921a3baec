#include "device_calls.hpp"
#include "dma_space.hpp"
#include "iommufd_abi.hpp"

#include "penstock/host/error.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace penstock::pcie {
namespace {

namespace fs = std::filesystem;

/// "vfio0", by which the device's own file is known; empty where there is none.
std::string file_name_of(pci_device const& device) {
  std::error_code none;
  for (auto const& each : fs::directory_iterator("/sys/bus/pci/devices/" + device.address + "/vfio-dev", none))
    return each.path().filename().string();
  return "";
}

class iommufd_space final : public dma_space {
 public:
  iommufd_space(owned_file file, u32 id, std::string address) : file_(std::move(file)), id_(id), address_(std::move(address)) {}

  std::vector<std::pair<u64, u64>> usable() const override {
    std::vector<iommufd::iova_range> found(64);
    iommufd::ioas_iova_ranges ranges = {};
    for (u32 attempt = 0; attempt < 2; ++attempt) {
      ranges = {};
      ranges.size = sizeof ranges;
      ranges.ioas_id = id_;
      ranges.num_iovas = static_cast<u32>(found.size());
      ranges.allowed_iovas = reinterpret_cast<u64>(found.data());
      if (ask(file_, iommufd::ask_ranges, &ranges)) break;
      if (errno != EMSGSIZE) return {};
      found.resize(ranges.num_iovas);  // so many there are
    }
    std::vector<std::pair<u64, u64>> all;
    for (u32 k = 0; k < std::min<u64>(ranges.num_iovas, found.size()); ++k) all.emplace_back(found[k].start, found[k].last);
    return all;
  }

  bool map(void* address, u64 bytes) override {
    iommufd::ioas_map map = {};
    map.size = sizeof map;
    map.flags = both_ways;
    map.ioas_id = id_;
    map.user_va = map.iova = reinterpret_cast<u64>(address);
    map.length = bytes;
    return ask(file_, iommufd::map_memory, &map);
  }

  void unmap(void* address, u64 bytes) noexcept override {
    iommufd::ioas_unmap unmap = {};
    unmap.size = sizeof unmap;
    unmap.ioas_id = id_;
    unmap.iova = reinterpret_cast<u64>(address);
    unmap.length = bytes;
    ask(file_, iommufd::unmap_memory, &unmap);
  }

  /// The kernel takes few makers' memory, if any.
  void map_peer(void* address, u64 bytes, int dma_buf) override {
    iommufd::ioas_map_file map = {};
    map.size = sizeof map;
    map.flags = both_ways;
    map.ioas_id = id_;
    map.fd = dma_buf;
    map.length = bytes;
    map.iova = reinterpret_cast<u64>(address);
    if (ask(file_, iommufd::map_file, &map)) return;
    throw_os_error("map", std::to_string(bytes) + " bytes of a GPU's memory for PCI device " + address_, errno,
                   "this kernel's iommufd does not take it: load the module penstock_p2p (docs/NVME.md, \"Data straight to a "
                   "GPU\")");
  }
  void unmap_peer(void* address, u64 bytes) noexcept override { unmap(address, bytes); }

 private:
  static constexpr u32 both_ways = iommufd::fixed_iova | iommufd::writeable | iommufd::readable;

  owned_file file_;
  u32 id_;
  std::string address_;
};

}  // namespace

std::unique_ptr<vfio_device> open_in_iommufd(pci_device const& device) {
  const std::string name = file_name_of(device);
  if (name.empty()) return nullptr;
  owned_file space(open("/dev/iommu", O_RDWR | O_CLOEXEC));
  owned_file file(open(("/dev/vfio/devices/" + name).c_str(), O_RDWR | O_CLOEXEC));
  if (!space.valid() || !file.valid()) {
    if (access("/dev/vfio/vfio", F_OK) == 0) return nullptr;
    fail_device(device, errno,
                "let this user read and write /dev/iommu and /dev/vfio/devices/" + name + " (chown, or a udev rule)");
  }
  iommufd::bind_device bind = {};
  bind.argsz = sizeof bind;
  bind.iommufd = space.get();
  if (!ask(file, iommufd::bind_to, &bind)) {
    fail_device(device, errno,
                errno == EPERM ? "the IOMMU does not remap interrupts: turn that on in the firmware"
                               : "another process drives it, or a device of its IOMMU group: end that one first");
  }
  iommufd::ioas_alloc fresh = {};
  fresh.size = sizeof fresh;
  if (!ask(space, iommufd::alloc_space, &fresh)) fail_device(device, errno, "iommufd has no address space for it");
  iommufd::attach_device attach = {};
  attach.argsz = sizeof attach;
  attach.pt_id = fresh.out_ioas_id;
  if (!ask(file, iommufd::attach_to, &attach))
    fail_device(device, errno, "its IOMMU cannot be used: the kernel's log says why");
  auto opened = std::make_unique<vfio_device>();
  opened->file = std::move(file);
  opened->space = std::make_unique<iommufd_space>(std::move(space), fresh.out_ioas_id, device.address);
  return opened;
}

}  // namespace penstock::pcie
