// Counting without a shared counter in a hot path: accesses are tallied in registers and added once at the end; what happens on
// misses is added to the shard of the multiprocessor or thread. The host sums the shards.
#pragma once

#include "penstock/core/config.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/core/ordinal.hpp"

namespace penstock {

enum class counter : u32 {
  hits,            ///< line requests that found their line in a frame
  misses,          ///< claims of a line by a request that then asks for its fill: misses + prefetches = fills
  joins,           ///< line requests that waited for another's fill
  fills,           ///< commands sent to bring a line in, prefetches included
  prefetches,      ///< fills that had no waiter when they were requested
  evictions,       ///< lines of any dataset that gave up their frame to one of this
  retries,         ///< validated reads that had to look again
  refills,         ///< fills that were asked for once more, after a failure
  errors,          ///< requests that ended with a status
  bytes_asked,     ///< by the program
  bytes_moved,     ///< from storage into frames: fills x line size
  writes,          ///< line requests that stored
  whole_lines,     ///< lines that were stored whole, without a fill
  write_backs,     ///< lines sent to storage
  write_commands,  ///< that carried them, to each replica
  write_errors,    ///< of those commands' runs: ended with a status
  bytes_changed,   ///< stored by the program
  bytes_written,   ///< sent to storage
  frame_waits,    ///< line requests that found no frame at once: all that they could have were dirty, on their way, or held; or
                  ///< as many as may be were being claimed
  search_ns,      ///< thread time in which a victim was searched for and taken. Of all threads of a group: it waits as one
  clean_ns,       ///< thread time of threads that made a line too many dirty and wrote others
  frame_wait_ns,  ///< thread time in which a group waited for a frame, and wrote lines to get one
  count_
};

inline constexpr u32 counter_kinds = static_cast<u32>(counter::count_);

struct alignas(128) counter_shard {
  u64 values[counter_kinds] = {};
};

struct counter_set_view {
  counter_shard* shards = nullptr;
  u32 shard_count = 0;  ///< a power of two

  PENSTOCK_FN void add(counter which, u64 n) const {
    add_relaxed(shards[executor_ordinal() & (shard_count - 1)].values[static_cast<u32>(which)], n);
  }
};

/// What one thread accessed, in two registers until `add_to`.
struct access_tally {
  u32 hits = 0;
  u32 reads = 0;

  PENSTOCK_FN void add_to(counter_set_view const& counters, u64 bytes_of_one) const {
    if (hits != 0) counters.add(counter::hits, hits);
    if (reads != 0) counters.add(counter::bytes_asked, reads * bytes_of_one);
  }
};

}  // namespace penstock
