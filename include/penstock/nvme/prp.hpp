// Physical region pages: how a command names its data buffer (base specification, "Physical Region Page Entry and List").
//
// Penstock's buffers (frames, bounce buffers) are contiguous in bus addresses and aligned to their own size up to a page, so a
// list is made once per buffer when memory is set up and no command ever writes one.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/nvme/wire.hpp"

namespace penstock::nvme {

/// Memory page size of a controller with CC.MPS = 0.
inline constexpr u64 page_bytes = 4096;

/// How many pages a buffer touches.
PENSTOCK_FN constexpr u64 pages_touched(u64 address, u64 bytes) {
  return (address % page_bytes + bytes + page_bytes - 1) / page_bytes;
}

/// Entries that the PRP list of such a buffer holds: all pages but the first; 0 where no list is needed.
PENSTOCK_FN constexpr u64 prp_list_entries(u64 address, u64 bytes) {
  const u64 pages = pages_touched(address, bytes);
  return pages <= 2 ? 0 : pages - 1;
}

/// Bus address of the page after the one that holds `address`.
PENSTOCK_FN constexpr u64 next_page(u64 address) { return address - address % page_bytes + page_bytes; }

/// Writes the list for a buffer; `list` has room for prp_list_entries. A list does not cross a page: REQUIRES at most 512
/// entries.
PENSTOCK_FN inline void write_prp_list(u64* list, u64 address, u64 bytes) {
  const u64 entries = prp_list_entries(address, bytes);
  for (u64 k = 0; k < entries; ++k) list[k] = next_page(address) + k * page_bytes;
}

/// Points a command at a buffer. `list_address` is the bus address of its list, used only where one is needed.
PENSTOCK_FN inline void set_data_pointer(submission_entry& command, u64 address, u64 bytes, u64 list_address) {
  const u64 pages = pages_touched(address, bytes);
  command.prp1 = address;
  command.prp2 = pages <= 1 ? 0 : pages == 2 ? next_page(address) : list_address;
}

}  // namespace penstock::nvme
