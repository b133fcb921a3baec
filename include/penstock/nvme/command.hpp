// The commands that Penstock sends, filled in. The command identifier is set by the queue that sends them.
#pragma once

#include "penstock/nvme/prp.hpp"
#include "penstock/nvme/wire.hpp"

namespace penstock::nvme {

/// Read or Write of `blocks` logical blocks from `start` (NVM command set specification, "Read command").
/// REQUIRES: 1 <= blocks <= 65536.
PENSTOCK_FN inline submission_entry transfer_command(opcode op, u32 namespace_id, lba start, u32 blocks) {
  submission_entry command;
  command.opcode = static_cast<u8>(op);
  command.namespace_id = namespace_id;
  command.dword10 = static_cast<u32>(value(start));
  command.dword11 = static_cast<u32>(value(start) >> 32);
  command.dword12 = (blocks - 1) & 0xffffu;  // number of logical blocks, 0's based
  return command;
}

PENSTOCK_FN inline lba starting_lba(submission_entry const& command) {
  return lba{static_cast<u64>(command.dword11) << 32 | command.dword10};
}

PENSTOCK_FN inline u32 block_count(submission_entry const& command) { return (command.dword12 & 0xffffu) + 1; }

PENSTOCK_FN inline submission_entry flush_command(u32 namespace_id) {
  submission_entry command;
  command.opcode = static_cast<u8>(opcode::flush);
  command.namespace_id = namespace_id;
  return command;
}

/// One range of a Dataset Management command (NVM command set specification, figure "Dataset Management - Range Definition").
struct dataset_range {
  u32 attributes = 0;
  u32 blocks = 0;
  u64 start = 0;
};
static_assert(sizeof(dataset_range) == 16 && offsetof(dataset_range, start) == 8);

/// Deallocates `ranges` ranges, which the data pointer names: what they hold is wanted no more. REQUIRES: 1 to 256.
PENSTOCK_FN inline submission_entry deallocate_command(u32 namespace_id, u32 ranges) {
  submission_entry command;
  command.opcode = static_cast<u8>(opcode::dataset_management);
  command.namespace_id = namespace_id;
  command.dword10 = ranges - 1;  // 0's based
  command.dword11 = 1u << 2;     // AD
  return command;
}

/// Identify (admin). The answer is one page of 4096 bytes at `address`.
PENSTOCK_FN inline submission_entry identify_command(identify_structure what, u32 namespace_id, u64 address) {
  submission_entry command;
  command.opcode = static_cast<u8>(admin_opcode::identify);
  command.namespace_id = namespace_id;
  command.dword10 = static_cast<u32>(what);
  set_data_pointer(command, address, page_bytes, 0);
  return command;
}

}  // namespace penstock::nvme
