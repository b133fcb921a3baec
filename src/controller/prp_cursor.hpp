// Walks through the PRPs of one command, page by page (base specification, "Physical Region Page Entry and List"). No memory of
// its own, so that it runs in a kernel, too.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/nvme/prp.hpp"

namespace penstock::controllers {

/// A piece of a command's buffer: contiguous, within one page.
struct prp_piece {
  u64 address = 0;
  u32 bytes = 0;
};

class prp_cursor {
 public:
  PENSTOCK_FN prp_cursor(u64 prp1, u64 prp2, u64 bytes) : first_(prp1), list_(prp2), left_(bytes) {}
  PENSTOCK_FN prp_cursor(nvme::submission_entry const& command, u64 bytes) : prp_cursor(command.prp1, command.prp2, bytes) {}

  PENSTOCK_FN bool done() const { return left_ == 0; }

  /// The next piece. nvme::code::success, or what the command ends with: invalid_prp_offset for a PRP that is not aligned (data
  /// moves 8 bytes at a time, and the first PRP must be aligned to that), data_transfer_error for an address of 0.
  /// REQUIRES: !done().
  PENSTOCK_FN u16 next(prp_piece& piece) {
    u64 address = first_;
    if (at_first_) {
      if (address == 0) return nvme::code::data_transfer_error;
      if (address % sizeof(u64) != 0) return nvme::code::invalid_prp_offset;
    } else {
      if (const u16 status = next_page(address); status != nvme::code::success) return status;
      if (address == 0) return nvme::code::data_transfer_error;
      if (address % nvme::page_bytes != 0) return nvme::code::invalid_prp_offset;
    }
    const u64 in_page = nvme::page_bytes - address % nvme::page_bytes;
    piece = {address, static_cast<u32>(in_page < left_ ? in_page : left_)};
    left_ -= piece.bytes;
    if (at_first_) listed_ = left_ > nvme::page_bytes;
    at_first_ = false;
    return nvme::code::success;
  }

 private:
  // The last entry of a page of the list names the next page of the list if more than one entry is still to come.
  PENSTOCK_FN u16 next_page(u64& address) {
    address = list_;
    if (!listed_) return nvme::code::success;
    for (;;) {
      if (list_ == 0) return nvme::code::data_transfer_error;
      if (list_ % sizeof(u64) != 0) return nvme::code::invalid_prp_offset;
      address = system_ref<u64>(*reinterpret_cast<u64*>(list_)).load(relaxed);
      if (list_ % nvme::page_bytes != nvme::page_bytes - sizeof(u64) || left_ <= nvme::page_bytes) break;
      if (address % nvme::page_bytes != 0) return nvme::code::invalid_prp_offset;
      list_ = address;
    }
    list_ += sizeof(u64);
    return nvme::code::success;
  }

  u64 first_;
  u64 list_;
  u64 left_;
  bool at_first_ = true;
  bool listed_ = false;
};

}  // namespace penstock::controllers
