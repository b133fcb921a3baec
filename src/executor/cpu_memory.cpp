#include "../host/owned_file.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock {
namespace {

constexpr u64 huge_page = u64{2} << 20;

/// Memory of the machine, with what the page cache gives up.
u64 available() {
  std::ifstream facts("/proc/meminfo");
  for (std::string name, unit; facts >> name;) {
    u64 kibibytes = 0;
    if (!(facts >> kibibytes)) break;
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(facts, unit);
  }
  return static_cast<u64>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGESIZE));
}

/// Of this process (ulimit -v).
u64 left_of_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~u64{0};
  u64 pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const u64 used = pages * static_cast<u64>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

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

  int make_part(u64 bytes) override {
    owned_file made(memfd_create("penstock-part", MFD_CLOEXEC));
    // Allocated now: a thread that stores where the system has no room is ended.
    if (!made.valid() || fallocate(made.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
      throw_os_error("allocate", std::to_string(bytes) + " bytes that processes share", errno,
                     "keep fewer rows or free memory");
    }
    return made.release();
  }

  std::byte* map_parts(std::span<memory_part const> parts) override {
    u64 all = 0;
    for (memory_part const& each : parts) {
      struct stat about{};
      if (fstat(each.file, &about) != 0 || static_cast<u64>(about.st_size) != each.bytes) {
        throw_bad_input("map", "a part of another process's memory", "it has another size than this process's: share it anew");
      }
      all += each.bytes;
    }
    const auto refuse = [&] {
      throw_os_error("map", std::to_string(all) + " bytes that processes share", errno, "keep fewer rows or free memory");
    };
    void* const range = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) refuse();
    auto* at = static_cast<std::byte*>(range);
    for (memory_part const& each : parts) {
      if (mmap(at, each.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, each.file, 0) == MAP_FAILED) {
        const int why = errno;
        munmap(range, all);
        errno = why;
        refuse();
      }
      at += each.bytes;
    }
    return static_cast<std::byte*>(range);
  }

  void unmap_parts(std::byte* begin, std::span<memory_part const> parts) noexcept override {
    u64 all = 0;
    for (memory_part const& each : parts) all += each.bytes;
    munmap(begin, all);
  }

  u64 free_bytes() const override { return std::min(available(), left_of_address_space()); }
  void write(void* to, void const* from, u64 bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void read(void* to, void const* from, u64 bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

int memory_resource::make_part(u64 bytes) {
  throw_bad_input("share", std::to_string(bytes) + " bytes of this memory", "it is one process's alone");
}

std::byte* memory_resource::map_parts(std::span<memory_part const>) {
  throw_bad_input("map", "parts of others' memory", "this memory is one process's alone");
}

memory_resource& cpu_memory() {
  static cpu_memory_resource resource;
  return resource;
}

}  // namespace penstock
