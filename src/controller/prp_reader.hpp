// Turns the PRPs of a command into pieces of memory (base specification, "Physical Region Page Entry and List").
#pragma once

#include "pieces.hpp"

#include "penstock/nvme/prp.hpp"

namespace penstock::controllers {

/// Decodes the data pointer of a command that moves `bytes`; pages that follow each other in memory become one piece.
/// Returns nvme::code::success, or the status that the command ends with: invalid_prp_offset for a PRP that is not aligned
/// (these controllers store 8 bytes at a time and ask for that alignment), data_transfer_error for an address of 0.
u16 read_prps(nvme::submission_entry const& command, u64 bytes, pieces& result);

}  // namespace penstock::controllers
