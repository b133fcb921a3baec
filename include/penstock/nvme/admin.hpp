// The admin commands that bring a controller up and look after it (base specification 2.0, section 5), filled in, and the
// structures that they answer with. The command identifier is set by the queue that sends them.
#pragma once

#include "penstock/nvme/command.hpp"

namespace penstock::nvme {

namespace feature {
inline constexpr u8 number_of_queues = 0x07;
inline constexpr u8 asynchronous_events = 0x0b;
}  // namespace feature

namespace log_page {
inline constexpr u8 errors = 0x01;
inline constexpr u8 health = 0x02;
inline constexpr u8 firmware_slots = 0x03;
inline constexpr u8 changed_namespaces = 0x04;
}  // namespace log_page

/// The events that a controller may be asked to report (feature 0Bh). Errors, which have no bit, are always reported.
namespace event_mask {
inline constexpr u32 health = 0x1f;  ///< the health log's critical warnings
inline constexpr u32 namespaces = 1u << 8;
inline constexpr u32 firmware = 1u << 9;
}  // namespace event_mask

enum class event_type : u8 { error = 0, health = 1, notice = 2, command_set = 6, vendor = 7 };

/// Information of a notice.
inline constexpr u8 namespaces_changed = 0x00;

inline constexpr u32 all_namespaces = 0xffffffffu;

constexpr submission_entry admin_command(admin_opcode op) {
  submission_entry command;
  command.opcode = static_cast<u8>(op);
  return command;
}

/// REQUIRES: `address` is page-aligned, and the ring contiguous from there; 2 to 65536 entries.
constexpr submission_entry create_completion_queue(u16 queue, u32 entries, u64 address) {
  submission_entry command = admin_command(admin_opcode::create_completion_queue);
  command.prp1 = address;
  command.dword10 = (entries - 1) << 16 | queue;
  command.dword11 = 1;  // physically contiguous, no interrupts
  return command;
}

/// Its completions go to the completion queue of the same identifier.
constexpr submission_entry create_submission_queue(u16 queue, u32 entries, u64 address) {
  submission_entry command = admin_command(admin_opcode::create_submission_queue);
  command.prp1 = address;
  command.dword10 = (entries - 1) << 16 | queue;
  command.dword11 = static_cast<u32>(queue) << 16 | 1;
  return command;
}

/// Bit of Identify Controller's OACS.
inline constexpr u16 takes_doorbell_buffers = 1u << 8;

/// Doorbells of all queues in one page, and the controller's event indices in another. REQUIRES: both page-aligned.
constexpr submission_entry doorbell_buffer_config(u64 values, u64 events) {
  submission_entry command = admin_command(admin_opcode::doorbell_buffer_config);
  command.prp1 = values;
  command.prp2 = events;
  return command;
}

constexpr submission_entry delete_queue(admin_opcode which, u16 queue) {
  submission_entry command = admin_command(which);
  command.dword10 = queue;
  return command;
}

/// Asks for `queues` submission and as many completion queues; see granted_queues.
constexpr submission_entry ask_for_queues(u32 queues) {
  submission_entry command = admin_command(admin_opcode::set_features);
  command.dword10 = feature::number_of_queues;
  command.dword11 = (queues - 1) << 16 | (queues - 1);
  return command;
}

/// Pairs, from dword 0 of the answer.
constexpr u32 granted_queues(u32 answer) {
  const u32 submission = (answer & 0xffffu) + 1, completion = (answer >> 16) + 1;
  return submission < completion ? submission : completion;
}

constexpr submission_entry abort_command(u16 queue, u16 id) {
  submission_entry command = admin_command(admin_opcode::abort);
  command.dword10 = static_cast<u32>(id) << 16 | queue;
  return command;
}

/// Whether the command was aborted, from dword 0 of the answer: else it had ended, or cannot be.
constexpr bool was_aborted(u32 answer) { return (answer & 1u) == 0; }

/// `events`: of event_mask.
constexpr submission_entry report_events(u32 events) {
  submission_entry command = admin_command(admin_opcode::set_features);
  command.dword10 = feature::asynchronous_events;
  command.dword11 = events;
  return command;
}

/// Reads the first `bytes` of a log page, to one page of memory. REQUIRES: a multiple of 4, at most page_bytes.
constexpr submission_entry get_log_page(u8 page, u32 bytes, u64 address) {
  submission_entry command = admin_command(admin_opcode::get_log_page);
  command.namespace_id = all_namespaces;
  command.prp1 = address;
  command.dword10 = (bytes / 4 - 1) << 16 | page;
  return command;
}

/// Which controllers a Namespace Attachment command is about.
struct controller_list {
  u16 count = 0;
  u16 ids[2047] = {};
};
static_assert(sizeof(controller_list) == 4096);

/// Gives a namespace to the controllers of the list at `address`, or takes it from them.
constexpr submission_entry attach_namespace(bool attach, u32 namespace_id, u64 address) {
  submission_entry command = admin_command(admin_opcode::namespace_attachment);
  command.namespace_id = namespace_id;
  command.prp1 = address;
  command.dword10 = attach ? 0 : 1;
  return command;
}

/// What the controller had to report: dword 0 of the answer to an Asynchronous Event Request.
struct asynchronous_event {
  u32 word = 0;

  constexpr u8 type() const { return word & 7u; }
  constexpr bool is(event_type wanted) const { return type() == static_cast<u8>(wanted); }
  constexpr u8 information() const { return static_cast<u8>(word >> 8); }
  /// Reading this log page clears it, so that the next one of its type is reported.
  constexpr u8 page() const { return static_cast<u8>(word >> 16); }
};

/// SMART / Health Information (log page 02h).
struct health_log {
  u8 critical_warning = 0;  ///< bit 0 spare low, 1 temperature, 2 reliability degraded, 3 read-only, 4 backup failed
  u8 temperature[2] = {};   ///< kelvin
  u8 available_spare = 0;   ///< percent
  u8 spare_threshold = 0;   ///< percent
  u8 percentage_used = 0;   ///< of its life, may exceed 100
  u8 reserved_6[26] = {};
  u64 data_units_read[2] = {};  ///< thousands of 512 bytes; this and what follows: 128 bits, the lower half first
  u64 data_units_written[2] = {};
  u64 host_reads[2] = {};
  u64 host_writes[2] = {};
  u64 busy_minutes[2] = {};
  u64 power_cycles[2] = {};
  u64 power_on_hours[2] = {};
  u64 unsafe_shutdowns[2] = {};
  u64 media_errors[2] = {};
  u64 error_log_entries[2] = {};
  u8 reserved_192[320] = {};
};
static_assert(sizeof(health_log) == 512 && std::is_trivially_copyable_v<health_log>);
static_assert(offsetof(health_log, data_units_read) == 32 && offsetof(health_log, error_log_entries) == 176);

}  // namespace penstock::nvme
