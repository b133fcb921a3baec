// What a member holds before a volume is made on it: nobody loses a file system to a wrong address.
#pragma once

#include "apps/volume/member.hpp"

#include <string>

namespace penstock::volumes {

struct probed {
  std::string holds;   ///< "an ext2, ext3 or ext4 file system"; empty: nothing that is known
  bool blank = false;  ///< what was looked at is zeros
};

/// Looks at the first 192 KiB. Throws penstock::error where they cannot be read.
probed probe(member& from);

}  // namespace penstock::volumes
