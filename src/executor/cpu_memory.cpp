#include "penstock/core/bits.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/host/error.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace penstock {
namespace {

constexpr u64 huge_page = u64{2} << 20;

// Mappings rather than the heap: zeroed by the kernel when first touched, page-aligned, and given back at once.
class cpu_memory_resource final : public memory_resource {
 public:
  void* allocate(memory_kind, u64 bytes) override {
    void* address = mmap(nullptr, round_up(bytes, 4096), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      throw_os_error("allocate", std::to_string(bytes) + " bytes", errno, "ask for a smaller cache or free memory");
    }
    // Frames and directories are read at random: fewer, larger pages spare the TLB where the system grants them.
    if (bytes >= huge_page) madvise(address, bytes, MADV_HUGEPAGE);
    return address;
  }

  void deallocate(memory_kind, void* address, u64 bytes) noexcept override { munmap(address, round_up(bytes, 4096)); }

  u64 free_bytes() const override {
    return static_cast<u64>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGESIZE));
  }
  void write(void* to, void const* from, u64 bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void read(void* to, void const* from, u64 bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

memory_resource& cpu_memory() {
  static cpu_memory_resource resource;
  return resource;
}

}  // namespace penstock
