#include "mapped_registers.hpp"

#include "../controller/fault_guard.hpp"

#include "penstock/core/atomic.hpp"
#include "penstock/host/error.hpp"
#include "penstock/nvme/registers.hpp"

#include <cerrno>

#include <sys/mman.h>

namespace penstock::pcie {
namespace {

struct access {
  u32* at;
  u32 value;
};

}  // namespace

mapped_registers::mapped_registers(int file, u64 offset, u64 bytes, std::string const& owner) : bytes_(bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    throw_os_error("map the registers of", owner, errno, "see that its memory space is on and that this user may");
  }
  address_ = static_cast<std::byte*>(mapped);
  controllers::install_fault_guard();
}

mapped_registers::~mapped_registers() { munmap(address_, bytes_); }

u32 mapped_registers::read(u64 offset) {
  access one{reinterpret_cast<u32*>(address_ + offset), 0};
  const auto load = [](void* argument) {
    auto& mine = *static_cast<access*>(argument);
    mine.value = system_ref<u32>(*mine.at).load(acquire);
  };
  return controllers::run_guarded(address_, bytes_, load, &one) ? one.value : nvme::all_ones;
}

/// Release: what was stored to memory before, the device sees before this.
void mapped_registers::write(u64 offset, u32 value) {
  access one{reinterpret_cast<u32*>(address_ + offset), value};
  const auto store = [](void* argument) {
    auto const& mine = *static_cast<access*>(argument);
    system_ref<u32>(*mine.at).store(mine.value, release);
  };
  controllers::run_guarded(address_, bytes_, store, &one);  // what is written to a function that is gone is lost
}

bool mapped_registers::write(u64 offset, void const* from, u64 bytes) {
  struct words {
    u32* to;
    u32 const* from;
    u64 count;
  } all{reinterpret_cast<u32*>(address_ + offset), static_cast<u32 const*>(from), bytes / sizeof(u32)};
  const auto store = [](void* argument) {
    auto const& mine = *static_cast<words*>(argument);
    for (u64 k = 0; k < mine.count; ++k) system_ref<u32>(mine.to[k]).store(mine.from[k], relaxed);
  };
  return controllers::run_guarded(address_, bytes_, store, &all);
}

}  // namespace penstock::pcie
