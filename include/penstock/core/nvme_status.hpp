// The statuses of NVMe completions as a table: what each is called, and its class, which says whether the same command is worth
// another try. Codes and meanings: base specification 2.1, figures "Status Code - Generic Command Status Values", "- Command
// Specific", "- Media and Data Integrity Errors" and "- Path Related"; NVM and zoned namespace command set specifications.
//
// `transient` are those whose definition says that the command may succeed when it is submitted again to the same controller
// (0x01d, 0x021, 0x022, 0x024, 0x082, 0x084, 0x300, 0x303), and those that end a command for a reason outside of it (0x004 to
// 0x008, a path that failed: 0x360, 0x370, 0x371). A command that ended with any other status ends so again, until the drive or
// the command is changed. What is not in the table (reserved, vendor specific) is permanent. A completion's Do Not Retry bit
// (status::vain) stands above all of this.
#pragma once

#include "penstock/core/error_class.hpp"

#include <utility>

namespace penstock {

struct nvme_status {
  u16 number;  ///< status code type << 8 | status code
  error_class kind;
  char const* name;
};

/// Ascending.
inline constexpr nvme_status nvme_statuses[] = {
    {0x001, error_class::permanent, "invalid command opcode"},
    {0x002, error_class::permanent, "invalid field in command"},
    {0x003, error_class::permanent, "command identifier conflict"},
    {0x004, error_class::transient, "data transfer error"},
    {0x005, error_class::transient, "aborted: power loss"},
    {0x006, error_class::transient, "internal error"},
    {0x007, error_class::transient, "aborted as asked"},
    {0x008, error_class::transient, "aborted: its queue was deleted"},
    {0x009, error_class::permanent, "aborted: its fused command failed"},
    {0x00a, error_class::permanent, "aborted: its fused command is missing"},
    {0x00b, error_class::permanent, "invalid namespace or format"},
    {0x00c, error_class::permanent, "command sequence error"},
    {0x00d, error_class::permanent, "invalid SGL segment descriptor"},
    {0x00e, error_class::permanent, "invalid number of SGL descriptors"},
    {0x00f, error_class::permanent, "invalid data SGL length"},
    {0x010, error_class::permanent, "invalid metadata SGL length"},
    {0x011, error_class::permanent, "invalid SGL descriptor type"},
    {0x012, error_class::permanent, "invalid use of the controller memory buffer"},
    {0x013, error_class::permanent, "invalid PRP offset"},
    {0x014, error_class::permanent, "atomic write unit exceeded"},
    {0x015, error_class::permanent, "operation denied"},
    {0x016, error_class::permanent, "invalid SGL offset"},
    {0x018, error_class::permanent, "inconsistent host identifier format"},
    {0x019, error_class::permanent, "keep alive timer expired"},
    {0x01a, error_class::permanent, "invalid keep alive timeout"},
    {0x01b, error_class::permanent, "aborted: its reservation was preempted"},
    {0x01c, error_class::permanent, "sanitize failed"},
    {0x01d, error_class::transient, "sanitize in progress"},
    {0x01e, error_class::permanent, "invalid SGL data block granularity"},
    {0x01f, error_class::permanent, "command not supported for a queue in the controller memory buffer"},
    {0x020, error_class::permanent, "namespace is write protected"},
    {0x021, error_class::transient, "command interrupted"},
    {0x022, error_class::transient, "transient transport error"},
    {0x023, error_class::permanent, "prohibited by command and feature lockdown"},
    {0x024, error_class::transient, "admin command media not ready"},
    {0x025, error_class::permanent, "invalid key tag"},
    {0x026, error_class::permanent, "host dispersed namespace support not enabled"},
    {0x027, error_class::permanent, "host identifier not initialized"},
    {0x028, error_class::permanent, "incorrect key"},
    {0x029, error_class::permanent, "flexible data placement disabled"},
    {0x02a, error_class::permanent, "invalid placement handle list"},
    {0x080, error_class::permanent, "LBA out of range"},
    {0x081, error_class::space, "capacity exceeded"},
    {0x082, error_class::transient, "namespace not ready"},
    {0x083, error_class::permanent, "reservation conflict"},
    {0x084, error_class::transient, "format in progress"},
    {0x100, error_class::permanent, "no such completion queue"},
    {0x101, error_class::permanent, "invalid queue identifier"},
    {0x102, error_class::permanent, "invalid queue size"},
    {0x103, error_class::permanent, "too many aborts at once"},
    {0x105, error_class::permanent, "too many requests for events at once"},
    {0x106, error_class::permanent, "invalid firmware slot"},
    {0x107, error_class::permanent, "invalid firmware image"},
    {0x108, error_class::permanent, "invalid interrupt vector"},
    {0x109, error_class::permanent, "no such log page"},
    {0x10a, error_class::permanent, "invalid format"},
    {0x10b, error_class::permanent, "firmware activation requires a conventional reset"},
    {0x10c, error_class::permanent, "its submission queues must be deleted first"},
    {0x10d, error_class::permanent, "feature identifier not saveable"},
    {0x10e, error_class::permanent, "feature not changeable"},
    {0x10f, error_class::permanent, "feature not namespace specific"},
    {0x110, error_class::permanent, "firmware activation requires a subsystem reset"},
    {0x111, error_class::permanent, "firmware activation requires a controller level reset"},
    {0x112, error_class::permanent, "firmware activation requires maximum time violation"},
    {0x113, error_class::permanent, "firmware activation prohibited"},
    {0x114, error_class::permanent, "overlapping range"},
    {0x115, error_class::space, "namespace insufficient capacity"},
    {0x116, error_class::permanent, "namespace identifier unavailable"},
    {0x118, error_class::permanent, "namespace already attached"},
    {0x119, error_class::permanent, "namespace is private"},
    {0x11a, error_class::permanent, "namespace not attached"},
    {0x11b, error_class::permanent, "thin provisioning not supported"},
    {0x11c, error_class::permanent, "invalid controller list"},
    {0x11d, error_class::permanent, "device self-test in progress"},
    {0x11e, error_class::permanent, "boot partition write prohibited"},
    {0x11f, error_class::permanent, "invalid controller identifier"},
    {0x120, error_class::permanent, "invalid secondary controller state"},
    {0x121, error_class::permanent, "invalid number of controller resources"},
    {0x122, error_class::permanent, "invalid resource identifier"},
    {0x123, error_class::permanent, "sanitize prohibited while the persistent memory region is enabled"},
    {0x124, error_class::permanent, "invalid ANA group identifier"},
    {0x125, error_class::permanent, "ANA attach failed"},
    {0x126, error_class::space, "insufficient capacity"},
    {0x127, error_class::permanent, "namespace attachment limit exceeded"},
    {0x128, error_class::permanent, "prohibition of command execution not supported"},
    {0x129, error_class::permanent, "I/O command set not supported"},
    {0x12a, error_class::permanent, "I/O command set not enabled"},
    {0x12b, error_class::permanent, "I/O command set combination rejected"},
    {0x12c, error_class::permanent, "invalid I/O command set"},
    {0x12d, error_class::permanent, "identifier unavailable"},
    {0x180, error_class::permanent, "conflicting attributes"},
    {0x181, error_class::permanent, "invalid protection information"},
    {0x182, error_class::permanent, "attempted write to read only range"},
    {0x183, error_class::permanent, "command size limit exceeded"},
    {0x1b6, error_class::permanent, "invalid zone operation request"},
    {0x1b7, error_class::permanent, "zone random write area resources unavailable"},
    {0x1b8, error_class::permanent, "zone boundary error"},
    {0x1b9, error_class::permanent, "zone is full"},
    {0x1ba, error_class::permanent, "zone is read only"},
    {0x1bb, error_class::permanent, "zone is offline"},
    {0x1bc, error_class::permanent, "zone invalid write"},
    {0x1bd, error_class::permanent, "too many active zones"},
    {0x1be, error_class::permanent, "too many open zones"},
    {0x1bf, error_class::permanent, "invalid zone state transition"},
    {0x280, error_class::media, "write fault"},
    {0x281, error_class::media, "unrecovered read error"},
    {0x282, error_class::media, "end-to-end guard check error"},
    {0x283, error_class::media, "end-to-end application tag check error"},
    {0x284, error_class::media, "end-to-end reference tag check error"},
    {0x285, error_class::permanent, "compare failure"},
    {0x286, error_class::permanent, "access denied"},
    {0x287, error_class::media, "deallocated or unwritten logical block"},
    {0x288, error_class::media, "end-to-end storage tag check error"},
    {0x300, error_class::transient, "internal path error"},
    {0x301, error_class::permanent, "asymmetric access persistent loss"},
    {0x302, error_class::permanent, "asymmetric access inaccessible"},
    {0x303, error_class::transient, "asymmetric access transition"},
    {0x360, error_class::transient, "controller pathing error"},
    {0x370, error_class::transient, "host pathing error"},
    {0x371, error_class::transient, "command aborted by host"},
};

namespace nvme_status_bits {

inline constexpr u32 group_shift = 6, groups = 0x800 >> group_shift;

/// The statuses of one class among those with the same upper bits, a bit each: device code has no table to look at.
constexpr u64 of(u32 group, error_class kind) {
  u64 bits = 0;
  for (nvme_status const& each : nvme_statuses) {
    if (each.number >> group_shift == group && each.kind == kind) bits |= u64{1} << (each.number & 63u);
  }
  return bits;
}

template <u32 Group, error_class Kind>
inline constexpr u64 constant = of(Group, Kind);

template <error_class Kind, u32... Group>
PENSTOCK_FN constexpr bool has(u16 number, std::integer_sequence<u32, Group...> /*all*/) {
  const u32 group = number >> group_shift;
  const u64 bits = ((group == Group ? constant<Group, Kind> : u64{0}) | ...);
  return (bits >> (number & 63u) & 1u) != 0;
}

template <error_class Kind>
PENSTOCK_FN constexpr bool has(u16 number) {
  return has<Kind>(number, std::make_integer_sequence<u32, groups>());
}

}  // namespace nvme_status_bits

/// The class of a status that is no success; `number` as in the table.
PENSTOCK_FN constexpr error_class class_of_nvme(u16 number) {
  if (nvme_status_bits::has<error_class::transient>(number)) return error_class::transient;
  if (nvme_status_bits::has<error_class::media>(number)) return error_class::media;
  return nvme_status_bits::has<error_class::space>(number) ? error_class::space : error_class::permanent;
}

/// Null: it has none.
constexpr char const* name_of_nvme(u16 number) {
  for (nvme_status const& each : nvme_statuses) {
    if (each.number == number) return each.name;
  }
  return nullptr;
}

}  // namespace penstock
