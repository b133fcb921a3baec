// What a member holds before a volume is made on it: nobody loses a file system to a wrong address.
#pragma once

#include "libs/volume/member.hpp"

#include <string>

namespace penstock::volumes {

/// Of a member's end; RAIDs of old formats have their superblocks there.
inline constexpr u64 end_probed_bytes = u64{128} << 10;

struct probed {
  std::string holds;   ///< "an ext2, ext3 or ext4 file system"; empty: nothing that is known
  bool blank = false;  ///< what was looked at of its beginning is zeros
};

/// Looks at the first 192 KiB and the last 128. Throws penstock::error where they cannot be read.
probed probe(member& from);

}  // namespace penstock::volumes
