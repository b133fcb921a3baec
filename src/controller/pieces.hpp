// Where the data of one command lies: pieces of this process's memory, in order. Every piece starts and ends on 8 bytes.
#pragma once

#include "penstock/core/config.hpp"

#include <vector>

#include <sys/uio.h>

namespace penstock::controllers {

using pieces = std::vector<iovec>;

/// Calls visit(address, bytes) for the `bytes` that follow the first `skip` ones.
template <class Visit>
void for_each_piece(pieces const& data, u64 skip, u64 bytes, Visit&& visit) {
  for (iovec const& piece : data) {
    if (bytes == 0) return;
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    const u64 part = piece.iov_len - skip < bytes ? piece.iov_len - skip : bytes;
    visit(static_cast<std::byte*>(piece.iov_base) + skip, part);
    bytes -= part;
    skip = 0;
  }
}

/// Fills the first `total` bytes: `valid` ones from `from`, zeros after them. REQUIRES: total a multiple of 8.
/// `next` is where a later call will copy from, or nullptr: its cache lines are fetched meanwhile, without which a copy of
/// random pages spends most of its time waiting for memory.
void copy_to_pieces(pieces const& to, void const* from, u64 valid, u64 total, void const* next = nullptr);

/// Copies the first `bytes` out. REQUIRES: bytes a multiple of 8, or `to` with room for the next one. `next`: as above, where
/// a later call will copy from or to.
void copy_from_pieces(void* to, pieces const& from, u64 bytes, void const* next = nullptr);

/// Fetches the first cache lines into the caches.
void prefetch_pieces(pieces const& data);

/// Zeros the bytes from `begin` to `end`. REQUIRES: end a multiple of 8; nobody else writes the word that holds `begin`.
void zero_pieces(pieces const& to, u64 begin, u64 end);

/// The first run of bytes that are not zero, from `begin` on and before `end`; both are `end`: there is none.
struct byte_run {
  u64 begin, end;
};
byte_run find_nonzero(pieces const& data, u64 begin, u64 end);

/// `bytes` of `from` after the first `skip` ones, as pieces of their own.
void cut_pieces(pieces const& from, u64 skip, u64 bytes, pieces& result);

}  // namespace penstock::controllers
