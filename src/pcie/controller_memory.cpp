#include "controller_memory.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/nvme/prp.hpp"

namespace penstock::pcie {

namespace {

/// The half that turns it on comes last, when the other one is there; and what is on is turned off before it moves.
void control(pci_function& function, u64 value) {
  function.write(nvme::at::controller_memory_control, static_cast<u32>(value & ~nvme::controller_memory::enable));
  function.write(nvme::at::controller_memory_control + 4, static_cast<u32>(value >> 32));
  function.write(nvme::at::controller_memory_control, static_cast<u32>(value));
}

}  // namespace

bool controller_memory::turn_on(pci_function& function, nvme::capabilities const& capabilities) {
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  taken_.clear();
  if (!capabilities.controller_memory()) return false;
  // Its size and place read as 0 until they are asked for.
  control(function, nvme::controller_memory::capabilities);
  const nvme::controller_memory_size size{function.read(nvme::at::controller_memory_size)};
  const nvme::controller_memory_place place{function.read(nvme::at::controller_memory_place)};
  if (size.bytes() == 0 || !size.takes_submission_queues()) return false;
  const u64 begin = place.offset_units() * size.unit();
  control(function, base | nvme::controller_memory::capabilities | nvme::controller_memory::enable);
  const bool placed = (function.read(nvme::at::controller_memory_status) & nvme::controller_memory::bad_address) == 0;
  constexpr u64 zero = 0;
  // Both ends: a controller may tell of more than its BAR shows.
  const auto reached = [&](u64 at) { return function.write_memory(place.bar(), at, &zero, sizeof zero); };
  if (!placed || !reached(begin) || !reached(begin + size.bytes() - sizeof zero)) return false;
  function_ = &function;
  bar_ = place.bar();
  begin_ = begin;
  bytes_ = size.bytes();
  return true;
}

void controller_memory::turn_off(pci_function& function, nvme::capabilities const& capabilities) {
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  taken_.clear();
  if (capabilities.controller_memory()) control(function, 0);
}

std::optional<u64> controller_memory::allocate(u64 bytes) {
  const u64 wanted = round_up(bytes, nvme::page_bytes);
  const std::lock_guard lock(mutex_);
  u64 at = 0;
  for (auto const& [offset, length] : taken_) {
    if (offset - at >= wanted) break;
    at = offset + length;
  }
  if (at + wanted > bytes_) return std::nullopt;
  taken_[at] = wanted;
  return at;
}

void controller_memory::free(u64 offset) {
  const std::lock_guard lock(mutex_);
  taken_.erase(offset);
}

bool ring_copy::tell(nvme::submission_entry const* ring, u32 entries, u32 first, u32 end) const {
  constexpr u64 size = sizeof(nvme::submission_entry);
  const auto copy = [&](u32 from, u32 to) {
    return from == to || memory->write(offset + from * size, ring + from, (to - from) * size);
  };
  return first <= end ? copy(first, end) : copy(first, entries) && copy(0, end);
}

}  // namespace penstock::pcie
