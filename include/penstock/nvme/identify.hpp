// What Identify answers with: the fields that Penstock reads, at their offsets in the 4096-byte structures.
#pragma once

#include "penstock/nvme/wire.hpp"

namespace penstock::nvme {

enum class controller_type : u8 { not_reported = 0, io = 1, discovery = 2, administrative = 3 };

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
  u32 version = 0;        ///< VER, as the register VS; 0: it says nothing
  u8 reserved_84[8] = {};
  u32 optional_events = 0;  ///< OAES: of the notices, as in feature 0Bh
  u8 reserved_96[15] = {};
  controller_type type = controller_type::not_reported;  ///< CNTRLTYPE
  u8 reserved_112[144] = {};
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
static_assert(offsetof(identify_controller, version) == 80 && offsetof(identify_controller, optional_events) == 92);
static_assert(offsetof(identify_controller, type) == 111);
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
  u8 features = 0;      ///< NSFEAT
  u8 lba_formats = 0;   ///< NLBAF, 0's based
  u8 formatted = 0;     ///< FLBAS: the format in use (3:0 and 6:5), 4: metadata is interleaved with the data
  u8 reserved_27[2] = {};
  u8 protection = 0;  ///< DPS 2:0: type of protection information; 0: none
  u8 reserved_30[2] = {};
  u8 format_progress = 0;  ///< FPI 7: it is reported, 6:0: percent of a Format NVM that remain
  u8 reserved_33[48] = {};
  u8 key_per_io = 0;          ///< KPIOS 0: commands must name a key
  u8 unique_lba_formats = 0;  ///< NULBAF: formats that follow the other ones
  u8 reserved_83[16] = {};
  u8 attributes = 0;  ///< NSATTR bit 0: write protected
  u8 reserved_100[28] = {};
  lba_format formats[64] = {};
  u8 reserved_384[3712] = {};

  PENSTOCK_FN constexpr u32 formats_count() const {
    const u32 count = u32{lba_formats} + 1 + unique_lba_formats;
    return count < 64 ? count : 64;
  }
  /// The format in use. Its upper bits count only where there are more than 16 formats.
  PENSTOCK_FN constexpr u32 format_index() const {
    return (formatted & 0xfu) | (formats_count() > 16 ? (formatted >> 5 & 3u) << 4 : 0u);
  }
  PENSTOCK_FN constexpr bool interleaves_metadata() const { return (formatted & 0x10u) != 0; }
  PENSTOCK_FN constexpr u32 protection_type() const { return protection & 7u; }
};
static_assert(sizeof(identify_namespace) == 4096);
static_assert(offsetof(identify_namespace, formatted) == 26 && offsetof(identify_namespace, protection) == 29);
static_assert(offsetof(identify_namespace, format_progress) == 32 && offsetof(identify_namespace, key_per_io) == 81);
static_assert(offsetof(identify_namespace, unique_lba_formats) == 82 && offsetof(identify_namespace, attributes) == 99);
static_assert(offsetof(identify_namespace, formats) == 128);

/// I/O Command Set Independent Identify Namespace data structure (CNS 08h, from 2.0 on).
struct independent_namespace {
  u8 features = 0;
  u8 reserved_1[7] = {};
  u8 attributes = 0;  ///< NSATTR
  u8 reserved_9[5] = {};
  u8 state = 0;  ///< NSTAT bit 0: ready
  u8 reserved_15[4081] = {};
};
static_assert(sizeof(independent_namespace) == 4096 && offsetof(independent_namespace, state) == 14);

/// Namespace Identification Descriptor list (CNS 03h): one after another, ended by one without a type or length.
struct namespace_descriptors {
  static constexpr u8 command_set = 4;  ///< type of the descriptor that has the command set, one byte
  static constexpr u32 header_bytes = 4;

  u8 bytes[4096] = {};

  /// The command set identifier (CSI); 0, the NVM command set, where none is listed.
  constexpr u8 csi() const {
    for (u32 at = 0; at + header_bytes < sizeof bytes && bytes[at] != 0 && bytes[at + 1] != 0;
         at += header_bytes + bytes[at + 1]) {
      if (bytes[at] == command_set) return bytes[at + header_bytes];
    }
    return 0;
  }
};
static_assert(sizeof(namespace_descriptors) == 4096);

}  // namespace penstock::nvme
