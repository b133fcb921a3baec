#include "hugepage_function.hpp"

#include "../host/owned_file.hpp"
#include "bar_windows.hpp"
#include "dma_arena.hpp"
#include "dma_space.hpp"
#include "mapped_registers.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <linux/memfd.h>

#include <cerrno>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace penstock::pcie {
namespace {

constexpr u64 huge = u64{2} << 20;
constexpr off_t command_register = 4;

[[noreturn]] void fail(std::string const& address, int code, std::string const& remedy) {
  throw_os_error("open", "PCI device " + address, code, remedy);
}

/// Physical address of what lies at `address` (Documentation/admin-guide/mm/pagemap.rst); 0 without the right to know it.
u64 physical(owned_file const& pagemap, void const* address) {
  u64 word = 0;
  const u64 number = reinterpret_cast<u64>(address) / dma_page;
  if (pread(pagemap.get(), &word, sizeof word, static_cast<off_t>(number * sizeof word)) != sizeof word) return 0;
  const bool present = word >> 63 != 0;
  return present ? (word & ((u64{1} << 55) - 1)) * dma_page : 0;
}

/// Huge pages, each mapped at its physical address: a page of a file may be mapped wherever one likes.
class identity_pages {
 public:
  identity_pages(std::string const& owner, u64 bytes)
      : file_(memfd_create("penstock", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB)), bytes_(round_up(bytes, huge)) {
    try {
      map_pages(owner);
    } catch (error const&) {
      unmap();
      throw;
    }
  }
  identity_pages(identity_pages const&) = delete;
  identity_pages& operator=(identity_pages const&) = delete;
  ~identity_pages() { unmap(); }

  std::vector<std::span<std::byte>> const& pages() const { return pages_; }

 private:
  std::string remedy() const {
    return std::to_string(bytes_ / huge) + " free pages of 2 MiB are needed: write their number to /proc/sys/vm/nr_hugepages";
  }

  void map_pages(std::string const& owner) {
    const owned_file pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    u32 in_the_way = 0;
    for (u64 at = 0; pages_.size() * huge < bytes_; at += huge) {
      if (map_page(owner, pagemap, at)) continue;
      // It stays with the file, so that the next one is another page.
      if (++in_the_way > most_in_the_way)
        fail(owner, EEXIST, "huge pages lie where this process has something else: start it again");
    }
  }

  void unmap() {
    for (std::span<std::byte> each : pages_) munmap(each.data(), each.size());
  }

  /// One more page of the file. False if this process has something else at its address, as a program does that is linked to
  /// low ones.
  bool map_page(std::string const& owner, owned_file const& pagemap, u64 offset) {
    const auto at = static_cast<off_t>(offset);
    if (!file_.valid() || ftruncate(file_.get(), static_cast<off_t>(offset + huge)) != 0) fail(owner, errno, remedy());
    void* const anywhere = mmap(nullptr, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), at);
    if (anywhere == MAP_FAILED) fail(owner, errno, remedy());
    const u64 address = physical(pagemap, anywhere);
    munmap(anywhere, huge);
    if (address == 0) fail(owner, EPERM, "physical addresses are for root to know (CAP_SYS_ADMIN)");
    void* const mapped =
        mmap(reinterpret_cast<void*>(address), huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file_.get(), at);
    if (mapped == MAP_FAILED) return false;
    pages_.emplace_back(static_cast<std::byte*>(mapped), huge);
    return true;
  }

  static constexpr u32 most_in_the_way = 32;

  owned_file file_;
  u64 bytes_;
  std::vector<std::span<std::byte>> pages_;
};

class hugepage_function final : public pci_function {
 public:
  hugepage_function(pci_device const& device, u64 bytes)
      : address_(device.address), folder_("/sys/bus/pci/devices/" + device.address), pages_(device.address, bytes),
        arena_(pages_.pages(), "PCI device " + device.address) {
    turn_on();
    registers_ = map_bar(0);
    if (registers_ == nullptr) fail(address_, errno, "its registers are for root");
  }

  std::string name() const override { return address_; }
  u64 register_bytes() const override { return registers_->bytes(); }
  u32 read(u64 offset) override { return registers_->read(offset); }
  void write(u64 offset, u32 value) override { registers_->write(offset, value); }
  std::span<std::byte> register_window() override { return registers_->mapped(); }
  bool write_memory(u32 bar, u64 offset, void const* from, u64 bytes) override {
    return windows_.write(bar, offset, from, bytes);
  }
  memory_resource& memory() override { return arena_; }
  bool reaches(void const* address, u64 bytes) const override { return arena_.holds(address, bytes); }

  void reset() override {
    const owned_file file(open((folder_ + "/reset").c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.valid() || ::write(file.get(), "1", 1) != 1) {
      throw_os_error("reset", "PCI device " + address_, errno, "its function takes no reset: switch the machine off and on");
    }
    turn_on();
  }

 private:
  std::unique_ptr<mapped_registers> map_bar(u32 number) const {
    const owned_file bar(open((folder_ + "/resource" + std::to_string(number)).c_str(), O_RDWR | O_SYNC | O_CLOEXEC));
    struct stat about = {};
    if (!bar.valid() || fstat(bar.get(), &about) != 0) return nullptr;
    return std::make_unique<mapped_registers>(bar.get(), 0, static_cast<u64>(about.st_size), "PCI device " + address_);
  }

  void turn_on() {
    const owned_file config(open((folder_ + "/config").c_str(), O_RDWR | O_CLOEXEC));
    u16 command = 0;
    const bool known = config.valid() && pread(config.get(), &command, sizeof command, command_register) == sizeof command;
    command |= 1u << 1 | 1u << 2;  // memory space, bus master
    if (!known || pwrite(config.get(), &command, sizeof command, command_register) != sizeof command) {
      fail(address_, errno, "turning it on is for root");
    }
  }

  std::string address_;
  std::string folder_;
  identity_pages pages_;
  dma_arena arena_;
  std::unique_ptr<mapped_registers> registers_;
  bar_windows windows_{[this](u32 bar) { return map_bar(bar); }};
};

}  // namespace

std::unique_ptr<pci_function> open_hugepage_function(pci_device const& device, u64 bytes) {
  return std::make_unique<hugepage_function>(device, bytes);
}

}  // namespace penstock::pcie
