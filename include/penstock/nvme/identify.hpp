// What Identify answers with: the fields that Penstock reads, at their offsets in the 4096-byte structures.
#pragma once

#include "penstock/nvme/wire.hpp"

namespace penstock::nvme {

/// Identify Controller data structure (base specification, figure "Identify - Identify Controller Data Structure").
struct identify_controller {
  u16 vendor_id = 0;
  u16 subsystem_vendor_id = 0;
  char serial_number[20] = {};
  char model_number[40] = {};
  char firmware_revision[8] = {};
  u8 reserved_72[5] = {};
  u8 max_transfer = 0;    ///< MDTS: largest transfer is 2^this pages; 0: no limit
  u16 controller_id = 0;  ///< CNTLID
  u8 reserved_80[12] = {};
  u32 optional_events = 0;  ///< OAES: of the notices, as in feature 0Bh
  u8 reserved_96[160] = {};
  u16 admin_commands = 0;  ///< OACS: optional admin commands
  u8 abort_limit = 0;      ///< ACL: aborts at once, 0's based
  u8 event_limit = 0;      ///< AERL: requests for asynchronous events at once, 0's based
  u8 reserved_260[252] = {};
  u8 submission_entry_size = 0;  ///< SQES: log2 of the required (3:0) and the largest (7:4) entry size
  u8 completion_entry_size = 0;  ///< CQES
  u16 max_commands = 0;
  u32 namespaces = 0;         ///< NN: the largest valid namespace identifier
  u16 optional_commands = 0;  ///< ONCS
  u8 reserved_522[3] = {};
  u8 volatile_write_cache = 0;     ///< VWC bit 0: there is one, so Flush means something
  u16 atomic_write_unit = 0;       ///< AWUN: blocks that are written wholly or not at all, 0's based
  u16 atomic_power_fail_unit = 0;  ///< AWUPF: the same when power fails
  u8 reserved_530[3566] = {};
};
static_assert(sizeof(identify_controller) == 4096);
static_assert(offsetof(identify_controller, max_transfer) == 77 && offsetof(identify_controller, submission_entry_size) == 512);
static_assert(offsetof(identify_controller, admin_commands) == 256 && offsetof(identify_controller, event_limit) == 259);
static_assert(offsetof(identify_controller, optional_commands) == 520 &&
              offsetof(identify_controller, atomic_power_fail_unit) == 528);
static_assert(offsetof(identify_controller, optional_events) == 92);
static_assert(offsetof(identify_controller, namespaces) == 516 && offsetof(identify_controller, volatile_write_cache) == 525);

namespace optional_command {
inline constexpr u16 dataset_management = 1u << 2;  ///< of ONCS
inline constexpr u16 write_zeroes = 1u << 3;
inline constexpr u16 namespace_management = 1u << 3;  ///< of OACS: attachment, too
}  // namespace optional_command

/// I/O Command Set specific Identify Controller data structure of the NVM command set (CNS 06h): the limits of commands that
/// move no data. 0: no limit.
struct command_set_limits {
  u8 verify = 0;
  u8 write_zeroes = 0;  ///< WZSL: 2^this pages
  u8 write_uncorrectable = 0;
  u8 ranges = 0;         ///< DMRL: of one Dataset Management command
  u32 range_blocks = 0;  ///< DMRSL: of one of its ranges
  u64 all_blocks = 0;    ///< DMSL: of all of them
  u8 reserved_16[4080] = {};
};
static_assert(sizeof(command_set_limits) == 4096 && offsetof(command_set_limits, all_blocks) == 8);

/// LBA format (NVM command set specification, figure "LBA Format Data Structure").
struct lba_format {
  u16 metadata_bytes = 0;
  u8 block_shift = 0;  ///< LBADS: log2 of the block size
  u8 relative_performance = 0;
};
static_assert(sizeof(lba_format) == 4);

/// Identify Namespace data structure (NVM command set specification).
struct identify_namespace {
  u64 blocks = 0;       ///< NSZE
  u64 capacity = 0;     ///< NCAP
  u64 utilization = 0;  ///< NUSE
  u8 features = 0;
  u8 lba_formats = 0;  ///< NLBAF, 0's based
  u8 formatted = 0;    ///< FLBAS bits 3:0: the format in use
  u8 reserved_27[72] = {};
  u8 attributes = 0;  ///< NSATTR bit 0: write protected
  u8 reserved_100[28] = {};
  lba_format formats[16] = {};
  u8 reserved_192[3904] = {};
};
static_assert(sizeof(identify_namespace) == 4096);
static_assert(offsetof(identify_namespace, formatted) == 26 && offsetof(identify_namespace, attributes) == 99);
static_assert(offsetof(identify_namespace, formats) == 128);

}  // namespace penstock::nvme
