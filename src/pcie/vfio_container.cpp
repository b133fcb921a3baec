#include "device_calls.hpp"
#include "dma_space.hpp"

#include "../../kernel/penstock_p2p.h"

#include "penstock/host/error.hpp"

#include <linux/vfio.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/ioctl.h>

namespace penstock::pcie {
namespace {

owned_file open_container(pci_device const& device) {
  owned_file container(open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC));
  if (!container.valid()) fail_device(device, errno, "/dev/vfio/vfio: modprobe vfio-pci, and let this user read and write it");
  if (ioctl(container.get(), VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
      ioctl(container.get(), VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) == 0) {
    refuse_device(device, "this kernel's VFIO has no type 1 IOMMU of version 2: use a newer kernel");
  }
  return container;
}

owned_file open_group(pci_device const& device, owned_file const& container) {
  const std::string path = "/dev/vfio/" + device.iommu_group;
  owned_file group(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!group.valid()) {
    fail_device(device, errno,
                errno == EBUSY ? "another process drives it: end that one first"
                               : path + ": let this user read and write it (chown, or a udev rule)");
  }
  vfio_group_status status = {};
  status.argsz = sizeof status;
  if (!ask(group, VFIO_GROUP_GET_STATUS, &status)) fail_device(device, errno, "its IOMMU group does not answer");
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    std::string others;
    for (std::string const& each : device.group_others) others += (others.empty() ? "" : ", ") + each;
    refuse_device(device, "its IOMMU group has devices that other drivers hold (" + others + "): give all of them to vfio-pci");
  }
  const int handle = container.get();
  if (!ask(group, VFIO_GROUP_SET_CONTAINER, &handle)) fail_device(device, errno, "its IOMMU group takes no container");
  if (!ask(container, VFIO_SET_IOMMU, static_cast<unsigned long>(VFIO_TYPE1v2_IOMMU))) {
    fail_device(device, errno,
                errno == EPERM
                    ? "the IOMMU does not remap interrupts: turn that on in the firmware, or accept what it means with "
                      "vfio_iommu_type1.allow_unsafe_interrupts=1"
                    : "its IOMMU cannot be used");
  }
  return group;
}

/// "0000:3b:00.1": domain, bus, slot and function.
bool split_address(std::string_view address, std::array<u32*, 4> const& numbers) {
  constexpr std::string_view separators = "::.";
  char const* at = address.data();
  char const* const end = at + address.size();
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (k > 0) {
      if (at == end || *at != separators[k - 1]) return false;
      ++at;
    }
    const auto [next, error] = std::from_chars(at, end, *numbers[k], 16);
    if (error != std::errc()) return false;
    at = next;
  }
  return at == end;
}

/// Memory of others goes through a module of ours (kernel/), which VFIO's own calls do not take.
class container_space final : public dma_space {
 public:
  container_space(owned_file container, owned_file group, int device, std::string address)
      : container_(std::move(container)), group_(std::move(group)), device_(device), address_(std::move(address)),
        peers_(open(PENSTOCK_P2P_DEVICE, O_RDWR | O_CLOEXEC)) {}

  /// VFIO tells of them in a chain of capabilities behind its answer; kernels before 5.4 don't.
  std::vector<std::pair<u64, u64>> usable() const override {
    vfio_iommu_type1_info head = {};
    head.argsz = sizeof head;
    if (!ask(container_, VFIO_IOMMU_GET_INFO, &head)) return {};
    std::vector<std::byte> answer(std::max<u64>(head.argsz, sizeof head));
    head.argsz = static_cast<u32>(answer.size());
    std::memcpy(answer.data(), &head, sizeof head);
    if (!ask(container_, VFIO_IOMMU_GET_INFO, answer.data())) return {};
    std::memcpy(&head, answer.data(), sizeof head);
    std::vector<std::pair<u64, u64>> ranges;
    const u64 first = (head.flags & VFIO_IOMMU_INFO_CAPS) != 0 ? head.cap_offset : 0;
    for (u64 at = first; at != 0 && at + sizeof(vfio_info_cap_header) <= answer.size();) {
      vfio_info_cap_header header;
      std::memcpy(&header, answer.data() + at, sizeof header);
      if (header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
        vfio_iommu_type1_info_cap_iova_range list;
        std::memcpy(&list, answer.data() + at, sizeof list);
        for (u32 k = 0; k < list.nr_iovas; ++k) {
          vfio_iova_range range;
          std::memcpy(&range, answer.data() + at + sizeof list + k * sizeof range, sizeof range);
          ranges.emplace_back(range.start, range.end);
        }
      }
      at = header.next;
    }
    return ranges;
  }

  bool map(void* address, u64 bytes) override {
    vfio_iommu_type1_dma_map map = {};
    map.argsz = sizeof map;
    map.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    map.vaddr = map.iova = reinterpret_cast<u64>(address);
    map.size = bytes;
    return ask(container_, VFIO_IOMMU_MAP_DMA, &map);
  }

  void unmap(void* address, u64 bytes) noexcept override {
    vfio_iommu_type1_dma_unmap unmap = {};
    unmap.argsz = sizeof unmap;
    unmap.iova = reinterpret_cast<u64>(address);
    unmap.size = bytes;
    ask(container_, VFIO_IOMMU_UNMAP_DMA, &unmap);
  }

  void map_peer(void* address, u64 bytes, int dma_buf) override {
    const std::string what = std::to_string(bytes) + " bytes of a GPU's memory for PCI device " + address_;
    if (!peers_.valid()) {
      throw_os_error("map", what, ENODEV,
                     "the kernel module penstock_p2p is not loaded: docs/NVME.md, \"Data straight to a GPU\"");
    }
    penstock_p2p_map map = {};
    map.argsz = sizeof map;
    map.dma_buf = dma_buf;
    map.vfio_device = device_;
    map.length = bytes;
    map.iova = reinterpret_cast<u64>(address);
    u32 slot = 0, part = 0;
    if (!split_address(address_, {&map.pci_domain, &map.pci_bus, &slot, &part})) {
      throw_bad_input("map", what, "that is no address of a PCI device");
    }
    map.pci_devfn = slot << 3 | part;
    if (ask(peers_, PENSTOCK_P2P_MAP, &map)) return;
    const int code = errno;
    throw_os_error("map", what, code,
                   code == ERANGE   ? "the IOMMU does not reach the address that the GPU has for it"
                   : code == EBUSY  ? "somebody is about to take the device away"
                   : code == EEXIST ? "something of this process lies at that address"
                                    : "the GPU's driver, or the IOMMU, does not let the device in");
  }

  void unmap_peer(void* address, u64) noexcept override {
    penstock_p2p_unmap unmap = {};
    unmap.argsz = sizeof unmap;
    unmap.iova = reinterpret_cast<u64>(address);
    ask(peers_, PENSTOCK_P2P_UNMAP, &unmap);
  }

 private:
  owned_file container_;
  owned_file group_;
  int device_;  ///< not ours
  std::string address_;
  owned_file peers_;
};

}  // namespace

vfio_device open_in_container(pci_device const& device) {
  owned_file container = open_container(device);
  owned_file group = open_group(device, container);
  owned_file file(ioctl(group.get(), VFIO_GROUP_GET_DEVICE_FD, device.address.c_str()));
  if (!file.valid()) fail_device(device, errno, "vfio-pci does not give it away");
  const int handle = file.get();
  return {std::move(file), std::make_unique<container_space>(std::move(container), std::move(group), handle, device.address)};
}

}  // namespace penstock::pcie
