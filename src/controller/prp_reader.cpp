#include "prp_reader.hpp"

#include "prp_cursor.hpp"

namespace penstock::controllers {

u16 read_prps(nvme::submission_entry const& command, u64 bytes, pieces& result) {
  result.clear();
  for (prp_cursor cursor(command, bytes); !cursor.done();) {
    prp_piece piece;
    if (const u16 status = cursor.next(piece); status != nvme::code::success) return status;
    auto* start = reinterpret_cast<std::byte*>(piece.address);
    if (!result.empty() && static_cast<std::byte*>(result.back().iov_base) + result.back().iov_len == start) {
      result.back().iov_len += piece.bytes;
    } else {
      result.push_back({start, piece.bytes});
    }
  }
  return nvme::code::success;
}

}  // namespace penstock::controllers
