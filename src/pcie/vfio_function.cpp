#include "vfio_function.hpp"

#include "../../kernel/penstock_p2p.h"
#include "../host/owned_file.hpp"
#include "bar_windows.hpp"
#include "device_calls.hpp"
#include "dma_space.hpp"
#include "mapped_registers.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <linux/vfio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace penstock::pcie {
namespace {

/// Where memory goes that an IOMMU of few address bits must reach: nothing of a program of ours lies there.
constexpr u64 low_window = u64{1} << 36;

/// Whether [address, address + bytes) lies in one of the ranges: their lengths by where they begin.
bool within(std::map<u64, u64> const& ranges, void const* address, u64 bytes) {
  const u64 first = reinterpret_cast<u64>(address);
  const auto after = ranges.upper_bound(first);
  if (after == ranges.begin()) return false;
  const auto [begin, length] = *std::prev(after);
  return first - begin <= length && bytes <= length - (first - begin);
}

/// What is allocated is mapped for the device, at the addresses that it has here, and nothing else is.
class vfio_memory final : public memory_resource {
 public:
  vfio_memory(dma_space& space, std::string owner)
      : space_(space), owner_(std::move(owner)), ranges_(space.usable()), next_low_(low_window) {}

  void* allocate(memory_kind, u64 bytes) override {
    const u64 length = round_up(bytes == 0 ? 1 : bytes, dma_page);
    const std::lock_guard lock(mutex_);
    void* address = find_place(length);
    if (!space_.map(address, length)) {
      const int code = errno;
      munmap(address, length);
      refuse(length, code,
             code == ENOMEM ? "the limit of locked memory is reached: raise it (ulimit -l), or ask for a smaller cache"
                            : "the IOMMU does not map it");
    }
    mapped_[reinterpret_cast<u64>(address)] = length;
    return address;
  }

  void deallocate(memory_kind, void* address, u64) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto at = mapped_.find(reinterpret_cast<u64>(address));
    if (at == mapped_.end()) return;
    space_.unmap(address, at->second);
    munmap(address, at->second);
    mapped_.erase(at);
  }

  void write(void* to, void const* from, u64 bytes) override { std::memcpy(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { std::memcpy(to, from, bytes); }

  bool holds(void const* address, u64 bytes) const {
    const std::lock_guard lock(mutex_);
    return within(mapped_, address, bytes);
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
    for (u32 attempt = 0; attempt < most_attempts; ++attempt, next_low_ += round_up(length, dma_page)) {
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

  dma_space& space_;
  std::string owner_;
  std::vector<std::pair<u64, u64>> ranges_;
  mutable std::mutex mutex_;  ///< guards all below
  u64 next_low_;
  std::map<u64, u64> mapped_;  ///< bytes by address
};

/// Where both ways are open, the older one with the module for GPUs, and the newer one without it.
vfio_device open_device(pci_device const& device) {
  if (::access(PENSTOCK_P2P_DEVICE, R_OK | W_OK) == 0 &&
      ::access(("/dev/vfio/" + device.iommu_group).c_str(), R_OK | W_OK) == 0)
    return open_in_container(device);
  if (auto opened = open_in_iommufd(device)) return std::move(*opened);
  return open_in_container(device);
}

class vfio_function final : public pci_function {
 public:
  explicit vfio_function(pci_device const& device)
      : address_(device.address), vfio_(open_device(device)), memory_(*vfio_.space, device.address) {
    vfio_region_info bar = {};
    bar.argsz = sizeof bar;
    bar.index = VFIO_PCI_BAR0_REGION_INDEX;
    if (!ask(vfio_.file, VFIO_DEVICE_GET_REGION_INFO, &bar))
      fail_device(device, errno, "the kernel does not describe its registers");
    if ((bar.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0)
      refuse_device(device, "its registers cannot be mapped: its BAR 0 shares a page");
    turn_on(device);
    listen_for_requests();
    registers_ = std::make_unique<mapped_registers>(vfio_.file.get(), bar.offset, bar.size, "PCI device " + device.address);
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
  bool reaches(void const* address, u64 bytes) const override {
    if (memory_.holds(address, bytes)) return true;
    const std::lock_guard lock(peers_mutex_);
    return within(peers_, address, bytes);
  }

  void map_peer(void* address, u64 bytes, int dma_buf) override {
    const std::lock_guard lock(peers_mutex_);
    vfio_.space->map_peer(address, bytes, dma_buf);
    peers_[reinterpret_cast<u64>(address)] = bytes;
  }
  void unmap_peer(void* address) noexcept override {
    const std::lock_guard lock(peers_mutex_);
    const auto at = peers_.find(reinterpret_cast<u64>(address));
    if (at == peers_.end()) return;
    vfio_.space->unmap_peer(address, at->second);
    peers_.erase(at);
  }

  /// The kernel counts up what it waits for; nobody else reads it.
  bool removal_requested() override {
    u64 times = 0;
    if (::read(requests_.get(), &times, sizeof times) == sizeof times) wanted_back_ = true;
    return wanted_back_;
  }

  void reset() override {
    if (ioctl(vfio_.file.get(), VFIO_DEVICE_RESET) != 0) {
      throw_os_error("reset", "PCI device " + address_, errno, "its function takes no reset: switch the machine off and on");
    }
  }

 private:
  std::unique_ptr<mapped_registers> map_bar(u32 bar) const {
    vfio_region_info region = {};
    region.argsz = sizeof region;
    region.index = VFIO_PCI_BAR0_REGION_INDEX + bar;
    if (bar > 5 || !ask(vfio_.file, VFIO_DEVICE_GET_REGION_INFO, &region)) return nullptr;
    if (region.size == 0 || (region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) return nullptr;
    return std::make_unique<mapped_registers>(vfio_.file.get(), region.offset, region.size, "PCI device " + address_);
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
    ask(vfio_.file, VFIO_DEVICE_SET_IRQS, set);
  }

  /// Memory space and bus mastering, in the command register of its configuration space.
  void turn_on(pci_device const& device) {
    vfio_region_info config = {};
    config.argsz = sizeof config;
    config.index = VFIO_PCI_CONFIG_REGION_INDEX;
    constexpr off_t at_command = 4;
    u16 command = 0;
    if (!ask(vfio_.file, VFIO_DEVICE_GET_REGION_INFO, &config))
      fail_device(device, errno, "the kernel does not describe its configuration");
    const off_t at = static_cast<off_t>(config.offset) + at_command;
    if (pread(vfio_.file.get(), &command, sizeof command, at) != sizeof command)
      fail_device(device, errno, "it cannot be turned on");
    command |= 1u << 1 | 1u << 2;
    if (pwrite(vfio_.file.get(), &command, sizeof command, at) != sizeof command)
      fail_device(device, errno, "it cannot be turned on");
  }

  std::string address_;
  vfio_device vfio_;
  owned_file requests_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::atomic<bool> wanted_back_{false};
  mutable std::mutex peers_mutex_;
  std::map<u64, u64> peers_;  ///< bytes of others' memory by address; under peers_mutex_
  vfio_memory memory_;
  std::unique_ptr<mapped_registers> registers_;
  bar_windows windows_{[this](u32 bar) { return map_bar(bar); }};
};

}  // namespace

std::unique_ptr<pci_function> open_vfio_function(pci_device const& device) { return std::make_unique<vfio_function>(device); }

}  // namespace penstock::pcie
