// What writing through a cache cost, in the figures that tables and JSON have.
#pragma once

#include "penstock/runtime/line_cache.hpp"

#include <map>
#include <string>

namespace penstock::bench {

/// Some runs of kernels that wrote through a cache: what was counted, and what it is measured against.
struct write_account {
  double kernel_seconds = 0;  ///< in which `threads` threads were at work
  u64 threads = 0;
  double seconds = 0;   ///< of all, flushes as well
  double capacity = 0;  ///< bytes of the drives; 0: not known

  u64 requests = 0;  ///< for a frame: misses, and lines that were stored whole
  u64 frame_waits = 0;
  u64 evicting_ns = 0, search_ns = 0, clean_ns = 0;  ///< the first is more than the others: waits for frames are in it
  u64 lines = 0, commands = 0;                       ///< sent to storage
  u64 bytes_changed = 0, bytes_written = 0;

  /// What a dataset's counters moved by.
  void add(cache_stats const& now, cache_stats const& before = {});
};

/// Adds these figures:
///   evicting_share        thread time in which room was made (victims found, lines written to have clean ones, waits for
///   that),
///                         over all thread time of the kernels. Taken as if all threads ran all the time: the least it can be
///   searching_share, cleaning_share: the parts of it that went into finding victims and into writing lines
///   frame_wait_share      of those who needed a frame: found none that was clean, and waited for a write (or a pin)
///   least_clean_frames    see line_cache; reserved_frames: what the cleaner keeps
///   bytes_changed         stored by the program; the same bytes stored twice count twice. bytes_written: sent to the
///   controller write_amplification   the latter over the former commands_per_line     less than 1 where neighbours went out
///   together drive_writes_per_day  bytes written over the capacity of the drives, if it went on so for a day: an extrapolation
/// What has nothing to be measured against is left out.
void describe_writes(std::map<std::string, double>& details, line_cache const& cache, write_account const& of);

}  // namespace penstock::bench
