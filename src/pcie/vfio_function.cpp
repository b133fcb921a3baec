#include "vfio_function.hpp"

#include "../host/owned_file.hpp"
#include "bar_windows.hpp"
#include "mapped_registers.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <linux/vfio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace penstock::pcie {
namespace {

constexpr u64 page = 4096;
/// Where memory goes that an IOMMU of few address bits must reach: nothing of a program of ours lies there.
constexpr u64 low_window = u64{1} << 36;

[[noreturn]] void refuse(pci_device const& device, std::string const& problem) {
  throw_bad_input("open", "PCI device " + device.address, problem);
}

[[noreturn]] void fail(pci_device const& device, int code, std::string const& remedy) {
  throw_os_error("open", "PCI device " + device.address, code, remedy);
}

template <class Argument>
int ask(owned_file const& of, unsigned long what, Argument argument) {
  return ioctl(of.get(), what, argument);
}

/// Bus addresses that the IOMMU translates: [first, last].
using address_ranges = std::vector<std::pair<u64, u64>>;

/// VFIO tells of the ranges in a chain of capabilities behind its answer; kernels before 5.4 don't, and take all of 48 bits.
address_ranges usable_addresses(owned_file const& container) {
  vfio_iommu_type1_info head = {};
  head.argsz = sizeof head;
  if (ask(container, VFIO_IOMMU_GET_INFO, &head) != 0) return {};
  std::vector<std::byte> answer(std::max<u64>(head.argsz, sizeof head));
  head.argsz = static_cast<u32>(answer.size());
  std::memcpy(answer.data(), &head, sizeof head);
  if (ask(container, VFIO_IOMMU_GET_INFO, answer.data()) != 0) return {};
  std::memcpy(&head, answer.data(), sizeof head);
  address_ranges ranges;
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

/// What is allocated is mapped for the device, at the addresses that it has here, and nothing else is.
class vfio_memory final : public memory_resource {
 public:
  vfio_memory(owned_file const& container, std::string owner)
      : container_(container), owner_(std::move(owner)), ranges_(usable_addresses(container)), next_low_(low_window) {}

  void* allocate(memory_kind, u64 bytes) override {
    const u64 length = round_up(bytes == 0 ? 1 : bytes, page);
    const std::lock_guard lock(mutex_);
    void* address = find_place(length);
    vfio_iommu_type1_dma_map map = {};
    map.argsz = sizeof map;
    map.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    map.vaddr = map.iova = reinterpret_cast<u64>(address);
    map.size = length;
    if (ask(container_, VFIO_IOMMU_MAP_DMA, &map) != 0) {
      const int code = errno;
      munmap(address, length);
      refuse(length, code,
             code == ENOMEM ? "the limit of locked memory is reached: raise it (ulimit -l), or ask for a smaller cache"
                            : "the IOMMU does not map it");
    }
    mapped_[map.iova] = length;
    return address;
  }

  void deallocate(memory_kind, void* address, u64) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto at = mapped_.find(reinterpret_cast<u64>(address));
    if (at == mapped_.end()) return;
    vfio_iommu_type1_dma_unmap unmap = {};
    unmap.argsz = sizeof unmap;
    unmap.iova = at->first;
    unmap.size = at->second;
    ask(container_, VFIO_IOMMU_UNMAP_DMA, &unmap);
    munmap(address, at->second);
    mapped_.erase(at);
  }

  void write(void* to, void const* from, u64 bytes) override { std::memcpy(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { std::memcpy(to, from, bytes); }

  bool holds(void const* address, u64 bytes) const {
    const u64 first = reinterpret_cast<u64>(address);
    const std::lock_guard lock(mutex_);
    auto at = mapped_.upper_bound(first);
    if (at == mapped_.begin()) return false;
    --at;
    return first - at->first <= at->second && bytes <= at->second - (first - at->first);
  }

 private:
  bool usable(void const* address, u64 length) const {
    const u64 first = reinterpret_cast<u64>(address);
    if (ranges_.empty()) return first + length <= u64{1} << 48;
    return std::ranges::any_of(ranges_, [&](auto const& r) { return first >= r.first && first + length - 1 <= r.second; });
  }

  /// Where the system puts it, if the IOMMU reaches that; else low, where it does.
  void* find_place(u64 length) {
    constexpr int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* address = mmap(nullptr, length, protection, flags, -1, 0);
    if (address == MAP_FAILED) refuse(length, errno, "ask for a smaller cache, or free memory");
    if (usable(address, length)) return address;
    munmap(address, length);
    for (u32 attempt = 0; attempt < most_attempts; ++attempt, next_low_ += round_up(length, page)) {
      void* const wanted = reinterpret_cast<void*>(next_low_);
      if (!usable(wanted, length)) continue;
      address = mmap(wanted, length, protection, flags | MAP_FIXED_NOREPLACE, -1, 0);
      if (address == MAP_FAILED) continue;
      next_low_ += length;
      return address;
    }
    next_low_ = low_window;  // what was given back lies behind
    refuse(length, ENOMEM, "no addresses that the IOMMU reaches are free: ask for a smaller cache");
  }

  [[noreturn]] void refuse(u64 bytes, int code, std::string const& remedy) const {
    throw_os_error("allocate", std::to_string(bytes) + " bytes for PCI device " + owner_, code, remedy);
  }

  static constexpr u32 most_attempts = 4096;

  owned_file const& container_;
  std::string owner_;
  address_ranges ranges_;
  mutable std::mutex mutex_;  ///< guards all below
  u64 next_low_;
  std::map<u64, u64> mapped_;  ///< bytes by address
};

owned_file open_container(pci_device const& device) {
  owned_file container(open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC));
  if (!container.valid()) fail(device, errno, "/dev/vfio/vfio: modprobe vfio-pci, and let this user read and write it");
  if (ioctl(container.get(), VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
      ioctl(container.get(), VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) == 0) {
    refuse(device, "this kernel's VFIO has no type 1 IOMMU of version 2: use a newer kernel");
  }
  return container;
}

owned_file open_group(pci_device const& device, owned_file const& container) {
  const std::string path = "/dev/vfio/" + device.iommu_group;
  owned_file group(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!group.valid()) {
    fail(device, errno,
         errno == EBUSY ? "another process drives it: end that one first"
                        : path + ": let this user read and write it (chown, or a udev rule)");
  }
  vfio_group_status status = {};
  status.argsz = sizeof status;
  if (ask(group, VFIO_GROUP_GET_STATUS, &status) != 0) fail(device, errno, "its IOMMU group does not answer");
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    std::string others;
    for (std::string const& each : device.group_others) others += (others.empty() ? "" : ", ") + each;
    refuse(device, "its IOMMU group has devices that other drivers hold (" + others + "): give all of them to vfio-pci");
  }
  const int handle = container.get();
  if (ask(group, VFIO_GROUP_SET_CONTAINER, &handle) != 0) fail(device, errno, "its IOMMU group takes no container");
  if (ask(container, VFIO_SET_IOMMU, static_cast<unsigned long>(VFIO_TYPE1v2_IOMMU)) != 0) {
    fail(device, errno,
         errno == EPERM ? "the IOMMU does not remap interrupts: turn that on in the firmware, or accept what it means with "
                          "vfio_iommu_type1.allow_unsafe_interrupts=1"
                        : "its IOMMU cannot be used");
  }
  return group;
}

class vfio_function final : public pci_function {
 public:
  explicit vfio_function(pci_device const& device)
      : address_(device.address), container_(open_container(device)), group_(open_group(device, container_)),
        device_(ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, device.address.c_str())), memory_(container_, device.address) {
    if (!device_.valid()) fail(device, errno, "vfio-pci does not give it away");
    vfio_region_info bar = {};
    bar.argsz = sizeof bar;
    bar.index = VFIO_PCI_BAR0_REGION_INDEX;
    if (ask(device_, VFIO_DEVICE_GET_REGION_INFO, &bar) != 0) fail(device, errno, "its registers are not told");
    if ((bar.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0)
      refuse(device, "its registers cannot be mapped: its BAR 0 shares a page");
    turn_on(device);
    listen_for_requests();
    registers_ = std::make_unique<mapped_registers>(device_.get(), bar.offset, bar.size, "PCI device " + device.address);
  }

  std::string name() const override { return address_; }
  u64 register_bytes() const override { return registers_->bytes(); }
  u32 read(u64 offset) override { return registers_->read(offset); }
  void write(u64 offset, u32 value) override { registers_->write(offset, value); }
  std::span<std::byte> register_window() override { return registers_->mapped(); }
  bool write_memory(u32 bar, u64 offset, void const* from, u64 bytes) override {
    return windows_.write(bar, offset, from, bytes);
  }
  memory_resource& memory() override { return memory_; }
  bool reaches(void const* address, u64 bytes) const override { return memory_.holds(address, bytes); }

  /// The kernel counts up what it waits for; nobody else reads it.
  bool removal_requested() override {
    u64 times = 0;
    if (::read(requests_.get(), &times, sizeof times) == sizeof times) wanted_back_ = true;
    return wanted_back_;
  }

  void reset() override {
    if (ioctl(device_.get(), VFIO_DEVICE_RESET) != 0) {
      throw_os_error("reset", "PCI device " + address_, errno, "its function takes no reset: switch the machine off and on");
    }
  }

 private:
  std::unique_ptr<mapped_registers> map_bar(u32 bar) const {
    vfio_region_info region = {};
    region.argsz = sizeof region;
    region.index = VFIO_PCI_BAR0_REGION_INDEX + bar;
    if (bar > 5 || ask(device_, VFIO_DEVICE_GET_REGION_INFO, &region) != 0) return nullptr;
    if (region.size == 0 || (region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) return nullptr;
    return std::make_unique<mapped_registers>(device_.get(), region.offset, region.size, "PCI device " + address_);
  }

  /// A kernel that cannot tell (before 4.3) takes the device away when this process ends, and not before.
  void listen_for_requests() {
    const int file = requests_.get();
    alignas(vfio_irq_set) std::byte set[sizeof(vfio_irq_set) + sizeof file] = {};
    vfio_irq_set head = {};
    head.argsz = sizeof set;
    head.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    head.index = VFIO_PCI_REQ_IRQ_INDEX;
    head.count = 1;
    std::memcpy(set, &head, sizeof head);
    std::memcpy(set + sizeof head, &file, sizeof file);
    ask(device_, VFIO_DEVICE_SET_IRQS, set);
  }

  /// Memory space and bus mastering, in the command register of its configuration space.
  void turn_on(pci_device const& device) {
    vfio_region_info config = {};
    config.argsz = sizeof config;
    config.index = VFIO_PCI_CONFIG_REGION_INDEX;
    constexpr off_t command_register = 4;
    u16 command = 0;
    if (ask(device_, VFIO_DEVICE_GET_REGION_INFO, &config) != 0) fail(device, errno, "its configuration is not told");
    const off_t at = static_cast<off_t>(config.offset) + command_register;
    if (pread(device_.get(), &command, sizeof command, at) != sizeof command) fail(device, errno, "it cannot be turned on");
    command |= 1u << 1 | 1u << 2;
    if (pwrite(device_.get(), &command, sizeof command, at) != sizeof command) fail(device, errno, "it cannot be turned on");
  }

  std::string address_;
  owned_file container_;
  owned_file group_;
  owned_file device_;
  owned_file requests_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::atomic<bool> wanted_back_{false};
  vfio_memory memory_;
  std::unique_ptr<mapped_registers> registers_;
  bar_windows windows_{[this](u32 bar) { return map_bar(bar); }};
};

}  // namespace

std::unique_ptr<pci_function> open_vfio_function(pci_device const& device) { return std::make_unique<vfio_function>(device); }

}  // namespace penstock::pcie
