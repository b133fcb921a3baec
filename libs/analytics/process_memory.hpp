// What this process takes, from /proc/self/status.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock::analytics {

struct process_memory {
  u64 peak_bytes = 0;  ///< VmHWM: most that was resident, since reset_peak_memory or the start
  u64 file_bytes = 0;  ///< RssFile: resident now through mappings of files; the kernel may take these pages back
};

process_memory read_process_memory();

/// Starts the peak anew, where the kernel lets us.
void reset_peak_memory();

}  // namespace penstock::analytics
