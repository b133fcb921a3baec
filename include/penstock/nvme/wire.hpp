// The wire: what lies in a submission queue and in a completion queue, byte for byte, as the NVM Express base specification has
// it (revision 2.0; figures named below). Little-endian hosts only.
#pragma once

#include "penstock/core/status.hpp"
#include "penstock/core/units.hpp"

#include <cstddef>
#include <type_traits>

namespace penstock::nvme {

/// I/O command set (NVM command set specification, figure "Opcodes for NVM commands").
enum class opcode : u8 { flush = 0x00, write = 0x01, read = 0x02, write_zeroes = 0x08, dataset_management = 0x09 };

/// Admin command set (base specification, figure "Opcodes for admin commands").
enum class admin_opcode : u8 {
  delete_submission_queue = 0x00,
  create_submission_queue = 0x01,
  get_log_page = 0x02,
  delete_completion_queue = 0x04,
  create_completion_queue = 0x05,
  identify = 0x06,
  abort = 0x08,
  set_features = 0x09,
  asynchronous_event_request = 0x0c,
  doorbell_buffer_config = 0x7c,
  namespace_attachment = 0x15,
};

/// Identify: which structure (CNS, command dword 10 bits 7:0).
enum class identify_structure : u8 {
  name_space = 0x00,
  controller = 0x01,
  active_namespaces = 0x02,
  namespace_descriptors = 0x03,
  command_set_limits = 0x06,
  independent_namespace = 0x08,
};

/// Submission queue entry, 64 bytes (base specification, figure "Common command format").
struct submission_entry {
  u8 opcode = 0;
  u8 flags = 0;  ///< bits 7:6 PSDT, 0: PRPs are used
  u16 command_id = 0;
  u32 namespace_id = 0;
  u32 dword2 = 0;
  u32 dword3 = 0;
  u64 metadata = 0;
  u64 prp1 = 0;  ///< bus address of the first piece of data; may start inside of a page
  u64 prp2 = 0;  ///< the second page, or the PRP list when more than two pages are touched
  u32 dword10 = 0;
  u32 dword11 = 0;
  u32 dword12 = 0;
  u32 dword13 = 0;
  u32 dword14 = 0;
  u32 dword15 = 0;
};
static_assert(sizeof(submission_entry) == 64 && std::is_trivially_copyable_v<submission_entry>);
static_assert(offsetof(submission_entry, command_id) == 2 && offsetof(submission_entry, namespace_id) == 4);
static_assert(offsetof(submission_entry, metadata) == 16 && offsetof(submission_entry, prp1) == 24);
static_assert(offsetof(submission_entry, prp2) == 32 && offsetof(submission_entry, dword10) == 40);
static_assert(offsetof(submission_entry, dword15) == 60);

/// Completion queue entry, 16 bytes (base specification, figure "Common completion queue entry layout").
struct completion_entry {
  u32 result = 0;    ///< dword 0: command specific
  u32 reserved = 0;  ///< dword 1
  u32 queue = 0;     ///< dword 2: submission queue head 15:0, submission queue identifier 31:16
  u32 outcome = 0;   ///< dword 3: command identifier 15:0, phase tag 16, status 31:17
};
static_assert(sizeof(completion_entry) == 16 && std::is_trivially_copyable_v<completion_entry>);
static_assert(offsetof(completion_entry, queue) == 8 && offsetof(completion_entry, outcome) == 12);

PENSTOCK_FN constexpr u16 command_id(u32 outcome) { return static_cast<u16>(outcome); }
PENSTOCK_FN constexpr u32 phase_tag(u32 outcome) { return outcome >> 16 & 1u; }
/// The 15 status bits: SC 7:0, SCT 10:8, CRD 12:11, M 13, DNR 14.
PENSTOCK_FN constexpr u16 status_bits(u32 outcome) { return static_cast<u16>(outcome >> 17); }
PENSTOCK_FN constexpr u32 make_outcome(u16 id, u32 phase, u16 status) {
  return static_cast<u32>(id) | (phase & 1u) << 16 | static_cast<u32>(status) << 17;
}

/// Status type << 8 | status code; 0 is success. Names of those that Penstock itself makes or acts on.
namespace code {
inline constexpr u16 success = 0x000;
inline constexpr u16 invalid_opcode = 0x001;
inline constexpr u16 invalid_field = 0x002;
inline constexpr u16 data_transfer_error = 0x004;
inline constexpr u16 power_loss = 0x005;
inline constexpr u16 internal_error = 0x006;
inline constexpr u16 abort_requested = 0x007;
inline constexpr u16 queue_deleted = 0x008;
inline constexpr u16 invalid_namespace = 0x00b;
inline constexpr u16 invalid_prp_offset = 0x013;
inline constexpr u16 write_protected = 0x020;
inline constexpr u16 lba_out_of_range = 0x080;
inline constexpr u16 capacity_exceeded = 0x081;
inline constexpr u16 namespace_not_ready = 0x082;
inline constexpr u16 completion_queue_invalid = 0x100;
inline constexpr u16 invalid_queue_identifier = 0x101;
inline constexpr u16 invalid_queue_size = 0x102;
inline constexpr u16 abort_limit_exceeded = 0x103;
inline constexpr u16 event_limit_exceeded = 0x105;
inline constexpr u16 invalid_log_page = 0x109;
inline constexpr u16 invalid_queue_deletion = 0x10c;
inline constexpr u16 write_fault = 0x280;
inline constexpr u16 unrecovered_read_error = 0x281;
}  // namespace code

/// Of the status bits: Do Not Retry.
inline constexpr u16 do_not_retry = 1u << 14;

/// The status of a completion; the whole status type and code count, not the code alone.
PENSTOCK_FN constexpr status completion_status(u32 outcome) {
  // One return: of two a GPU makes loads of a constant status in memory.
  const u16 bits = status_bits(outcome), type_and_code = bits & 0x7ffu;
  const bool good = type_and_code == code::success;
  const u16 vain = !good && (bits & do_not_retry) != 0 ? status::vain : 0;
  return {good ? status_domain::ok : status_domain::nvme, static_cast<u16>(type_and_code | vain)};
}

}  // namespace penstock::nvme
