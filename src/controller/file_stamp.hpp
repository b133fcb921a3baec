// Whether a file is still what it was: by its size and times, where these say so.
#pragma once

#include "penstock/core/config.hpp"

#include <sys/stat.h>

namespace penstock::controllers {

struct file_stamp {
  u64 size = 0;
  u64 changed_ns = 0;    ///< st_mtime
  u64 status_ns = 0;     ///< st_ctime
  bool settled = false;  ///< a change that follows has another time

  /// False where the times do not show it.
  bool is_same(file_stamp const& later) const {
    return settled && size == later.size && changed_ns == later.changed_ns && status_ns == later.status_ns;
  }
};

/// Whether every change of a file behind a stat gives it another time: multigrain timestamps, of Linux 6.13 and some file
/// systems. Elsewhere two changes within a timer tick have the same.
bool has_fine_times(int file);

/// Of a file that was looked at just now. `file`: its descriptor; -1: its times are coarse.
file_stamp stamp_of(struct stat const& about, int file);

u64 nanoseconds(timespec const& t);

}  // namespace penstock::controllers
