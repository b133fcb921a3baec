// A volume is made: `penstock volume create`.
#pragma once

#include "libs/volume/probe.hpp"
#include "libs/volume/volume.hpp"

#include <string>
#include <vector>

namespace penstock::volumes {

struct make_options {
  volume_layout layout = volume_layout::single;
  u64 stripe_bytes = most_chunk_bytes;
  u64 file_bytes = 0;              ///< of files that are not there yet, which are made; 0: none are
  bool overwrite_unknown = false;  ///< members that hold something, nobody knows what
  bool overwrite_known = false;    ///< and those with a volume, a file system, a partition table
};

struct probed_member {
  std::string name;
  u64 bytes = 0;
  probed found;
};

/// What is on those that are there.
std::vector<probed_member> probe_members(std::vector<std::string> const& names);

/// Makes a volume on members as they are named (open_members). Throws bad_input, before anything is written, for members that
/// cannot be or hold something that must not be overwritten; files that it made go then.
volume make_volume(std::vector<std::string> const& names, make_options const& options);

}  // namespace penstock::volumes
