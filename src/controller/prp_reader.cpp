#include "prp_reader.hpp"

#include <algorithm>

namespace penstock::far_side {
namespace {

using nvme::page_bytes;

class piece_builder {
 public:
  piece_builder(pieces& result, u64 bytes) : result_(result), left_(bytes) { result_.clear(); }

  u64 left() const { return left_; }
  u64 pages_left() const { return ceil_div(left_, page_bytes); }

  void append(u64 address) {
    const u64 bytes = std::min(left_, page_bytes - address % page_bytes);
    auto* start = reinterpret_cast<std::byte*>(address);
    if (!result_.empty() && static_cast<std::byte*>(result_.back().iov_base) + result_.back().iov_len == start) {
      result_.back().iov_len += bytes;
    } else {
      result_.push_back({start, bytes});
    }
    left_ -= bytes;
  }

  u16 append_page(u64 address) {
    if (address == 0) return nvme::code::data_transfer_error;
    if (address % page_bytes != 0) return nvme::code::invalid_prp_offset;
    append(address);
    return nvme::code::success;
  }

 private:
  pieces& result_;
  u64 left_;
};

// The last entry of a page of the list names the next page of the list if more than one entry is still to come.
u16 read_list(u64 list, piece_builder& builder) {
  while (builder.left() != 0) {
    if (list == 0) return nvme::code::data_transfer_error;
    if (list % sizeof(u64) != 0) return nvme::code::invalid_prp_offset;
    const u64 entry = *reinterpret_cast<u64 const*>(list);
    if (list % page_bytes == page_bytes - sizeof(u64) && builder.pages_left() > 1) {
      if (entry % page_bytes != 0) return nvme::code::invalid_prp_offset;
      list = entry;
      continue;
    }
    if (const u16 status = builder.append_page(entry); status != nvme::code::success) return status;
    list += sizeof(u64);
  }
  return nvme::code::success;
}

}  // namespace

u16 read_prps(nvme::submission_entry const& command, u64 bytes, pieces& result) {
  piece_builder builder(result, bytes);
  if (command.prp1 == 0) return nvme::code::data_transfer_error;
  if (command.prp1 % sizeof(u64) != 0) return nvme::code::invalid_prp_offset;
  builder.append(command.prp1);
  if (builder.left() == 0) return nvme::code::success;
  if (builder.pages_left() == 1) return builder.append_page(command.prp2);
  return read_list(command.prp2, builder);
}

}  // namespace penstock::far_side
