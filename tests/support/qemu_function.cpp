// One NVMe function of a machine of QEMU: its configuration space and its registers, through qtest.
#include "penstock/nvme/registers.hpp"
#include "support/qemu_machine.hpp"
#include "support/qemu_slots.hpp"

namespace penstock::test_support {
namespace {

using namespace qemu;

constexpr u64 first_bar = 0xe0400000;
constexpr u64 bar_distance = 0x100000;
constexpr u64 first_memory_bar = 0xc0000000, memory_bar_distance = 0x2000000;  // BAR 2, of those that have memory
constexpr u32 command_register = 0x04, bar_register = 0x10, memory_bar_register = 0x18, capabilities_register = 0x34;
constexpr u32 memory_space = 1u << 1, bus_master = 1u << 2;
constexpr u32 express_capability = 0x10, device_control = 8, function_level_reset = 1u << 15;

}  // namespace

qemu_function::qemu_function(qemu_machine& machine, u32 slot)
    : machine_(machine), devfn_(slot << 3), bar_(first_bar + (slot - first_slot) * bar_distance) {
  set_config(bar_register, nvme::all_ones);
  bar_bytes_ = (~u64{config(bar_register) & ~0xfu} + 1) & 0xffffffffu;
  place();
}

qemu_function::qemu_function(qemu_machine& machine, u32 slot, u32 function, u64 bar, u64 bar_bytes)
    : machine_(machine), devfn_(slot << 3 | function), bar_(bar), bar_bytes_(bar_bytes) {
  set_config(command_register, memory_space | bus_master);
}

void qemu_function::place() {
  set_config(bar_register, static_cast<u32>(bar_));
  set_config(bar_register + 4, 0);
  set_config(memory_bar_register, static_cast<u32>(memory_bar()));
  set_config(memory_bar_register + 4, 0);
  set_config(command_register, memory_space | bus_master);
}

u32 qemu_function::config(u32 offset) {
  machine_.qtest("outl 0xcf8 " + std::to_string(0x80000000u | devfn_ << 8 | offset));
  return static_cast<u32>(machine_.qtest("inl 0xcfc"));
}

void qemu_function::set_config(u32 offset, u32 value) {
  machine_.qtest("outl 0xcf8 " + std::to_string(0x80000000u | devfn_ << 8 | offset));
  machine_.qtest("outl 0xcfc " + std::to_string(value));
}

u32 qemu_function::read(u64 offset) {
  return decodes_ ? static_cast<u32>(machine_.qtest("readl " + std::to_string(bar_ + offset))) : nvme::all_ones;
}

void qemu_function::write(u64 offset, u32 value) {
  if (!decodes_) return;
  machine_.qtest("writel " + std::to_string(bar_ + offset) + " " + std::to_string(value));
}

u64 qemu_function::memory_bar() const { return first_memory_bar + ((devfn_ >> 3) - first_slot) * memory_bar_distance; }

/// Whoever stores there next was told by the device that it has done with this, which ThreadSanitizer does not see.
__attribute__((no_sanitize("thread"))) bool qemu_function::write_memory(u32 bar, u64 offset, void const* from, u64 bytes) {
  if (bar != 2 || (devfn_ & 7) != 0 || !decodes_) return false;
  std::string digits = "0x";
  for (u64 k = 0; k < bytes; ++k) {
    constexpr char hex[] = "0123456789abcdef";
    const auto byte = static_cast<u8>(static_cast<char const*>(from)[k]);
    digits += {hex[byte >> 4], hex[byte & 15]};
  }
  machine_.qtest("write " + std::to_string(memory_bar() + offset) + " " + std::to_string(bytes) + " " + digits);
  return true;
}

memory_resource& qemu_function::memory() { return machine_.memory(); }

bool qemu_function::reaches(void const* address, u64 bytes) const { return machine_.memory().holds(address, bytes); }

void qemu_function::set_memory_space(bool on) {
  decodes_ = on;
  set_config(command_register, on ? memory_space | bus_master : 0);
}

void qemu_function::reset() {
  u32 at = config(capabilities_register) & 0xffu;
  while (at != 0 && (config(at) & 0xffu) != express_capability) at = config(at) >> 8 & 0xffu;
  if (at == 0) fail("the function cannot be reset");
  set_config(at + device_control, config(at + device_control) | function_level_reset);
  place();
}

}  // namespace penstock::test_support
