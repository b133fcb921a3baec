// Whether a volume has what was written to it.
#pragma once

#include "libs/volume/volume.hpp"

#include <string>
#include <vector>

namespace penstock::volumes {

struct finding {
  std::string file;  ///< empty: it is of the volume's own
  u32 member = 0;
  u64 offset = 0;  ///< on that member
  u64 bytes = 0;
  std::string what;
};

struct verdict {
  u64 bytes = 0;                  ///< that were read, of all members
  u64 problems = 0;               ///< all, told or not
  std::vector<finding> findings;  ///< the first `most_findings`
  double seconds = 0;
};

inline constexpr u64 most_findings = 1000;

/// Reads every chunk of every file, of a replicated volume on each member, and superblocks and tables.
verdict verify(volume& all, progress_fn const& progress = {});

}  // namespace penstock::volumes
