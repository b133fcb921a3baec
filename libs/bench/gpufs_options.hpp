// GPUfs as its authors describe it before and after their optimizations (Shahar and Silberstein, SYSTOR 2016), a baseline for
// files of Penstock. Each optimization is an option that can be enabled alone.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/core/config.hpp"

namespace penstock::bench {

/// Where a page is found (sections 2.2, 4.1).
enum class gpufs_lookup : u32 {
  radix_tree,  ///< one per file; insertions and removals take the file's lock, reads take none
  hash_table,  ///< one for all files; insertions and removals take the bucket's lock, reads take none
};

/// Where a page's frame comes from (section 4.2).
enum class gpufs_allocation : u32 {
  locked_list,  ///< each allocation takes the allocator's lock; evicts when there is no free frame
  ring,         ///< an atomic head; the lock is the evictor's alone, which starts before the last free frame is taken
};

/// How bytes get into a frame (section 4.3).
enum class gpufs_transfers : u32 {
  none,     ///< not at all: an empty stub, to measure the cache alone; the first word of a page is stamped
  single,   ///< a worker moves one page per request
  batched,  ///< a worker moves the pages of all waiting requests at once, and the requesters copy from the staging buffer
};

/// Which threads make a call together (section 4.3.2). A CPU's thread is alone at either.
enum class gpufs_level : u32 { warp, block };

enum class gpufs_error : u32 {
  none,
  no_frame,    ///< all frames of the allocator stayed pinned, or all words of the bucket in use, until the deadline
  deadline,    ///< no answer of a worker, or of the group that brings the page
  io,          ///< the file could not be read
  beyond_end,  ///< of the file
};

struct gpufs_options {
  u64 cache_bytes = u64{1} << 20;
  u64 page_bytes = 4096;  ///< a power of two, 512 bytes to 1 MiB
  gpufs_lookup lookup = gpufs_lookup::radix_tree;
  gpufs_allocation allocation = gpufs_allocation::locked_list;
  u32 allocators = 1;  ///< 1 to 64; a group's number chooses its own
  gpufs_transfers transfers = gpufs_transfers::single;
  u32 workers = 1;   ///< host threads that read, 1 to 8; CPU: 0 lets the calling thread read in place
  u32 slots = 4096;  ///< requests under way at once
  u64 timeout_ns = 10 * one_second_ns;
};

}  // namespace penstock::bench
