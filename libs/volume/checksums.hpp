// The checksums of a stored file's chunks, and reading by them.
#pragma once

#include "libs/volume/volume.hpp"

#include <span>
#include <vector>

namespace penstock::volumes {

/// A part of an extent that has a checksum of its own.
struct chunk {
  u64 number = 0;  ///< in its file
  u64 address = 0;
  u64 bytes = 0;
};

/// The part of `file`'s chunk `number`.
chunk chunk_of(stored_file const& file, geometry const& shape, u64 number);

/// How much is read or written at once: whole chunks, enough for all members to work.
u64 window_bytes(geometry const& shape);

/// The end of the window that `address` lies in, or `limit` if that comes first.
u64 window_end(geometry const& shape, u64 address, u64 limit);

/// Reads a stored file's extent, window by window, and looks at every chunk. What one replica does not have, or has wrong, is
/// taken from another.
class checked_reader {
 public:
  /// Reads the checksums. Throws penstock::error (world) where no member has them as they were written.
  checked_reader(volume& from, stored_file const& file);

  u32 sum_of(u64 number) const { return sums_[number]; }
  /// REQUIRES: both are page addresses of the extent, before its sums; the window begins where a chunk does. The span is valid
  /// until the next call. Throws penstock::error (world), with member and place, for a chunk that nobody has.
  std::span<std::byte const> read(u64 begin, u64 end);

 private:
  void load_sums();
  bool matches(chunk const& each, std::span<std::byte const> bytes) const;
  void read_alone(chunk const& each, std::span<std::byte> to);

  volume& volume_;
  stored_file const& file_;
  std::vector<u32> sums_;
  std::vector<std::byte> buffer_;
};

/// "member 1 (/data/b.img), byte 1048576".
std::string place_text(volume const& in, u64 address, u32 replica);

}  // namespace penstock::volumes
