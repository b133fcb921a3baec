// Kernels of `penstock bench io`: threads that read and write blocks.
#pragma once

#include "apps/bench/block_word.hpp"
#include "penstock/host/launch.hpp"
#include "penstock/queue/block_io.hpp"

namespace penstock::bench {

/// Most drives of one run.
inline constexpr u32 most_drives = 16;

struct io_data {
  block_device_view devices[most_drives];
  u32 drives = 1;
  u32 block_words = 0;
  u64 commands = 0;  ///< of one run; a power of two
  u64 blocks = 0;    ///< of one drive that are used; a power of two
  u64 first = 0;     ///< so that no two runs ask in the same order
  u32 write_percent = 0;
  u32 lanes = 32;                     ///< of a group that issue, at most
  bool sequential = false;            ///< blocks in their order
  bool whole = false;                 ///< look at every word that was read, not at the first of each block
  u64* data = nullptr;                ///< a block for each thread
  block_request* requests = nullptr;  ///< one for each thread
  u64* wrong = nullptr;               ///< commands that failed or brought the wrong bytes
};

/// A command per thread and item, all of a group's at once. Groups go round the drives.
struct run_commands {
  io_data io;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    const u32 width = size(g) < io.lanes ? size(g) : io.lanes;
    const u32 lane = index_in(g);
    const u64 thread = range.first * size(g) + lane;
    block_request& mine = io.requests[thread];
    u64* const data = io.data + thread * io.block_words;
    u64 bad = 0;
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 number = item * width + lane;
      // Drives in turn, shifted from round to round: else a group would ask one drive only, and each drive's queues would be
      // those of the few groups that do.
      const u32 drive = static_cast<u32>((item + item / io.drives) % io.drives);
      const u64 place = item / io.drives * width + lane + io.first;
      const u64 block = io.sequential ? place & (io.blocks - 1) : permute(place, io.blocks);
      const bool writes = io.write_percent != 0 && item * 37 % 100 < io.write_percent;
      const bool want = lane < width && number < io.commands;
      if (writes) fill(g, want, drive, block, data);
      block_device_view const& device = io.devices[drive];
      const status s = writes ? write_blocks(g, device, want, mine, lba{block}, 1, reinterpret_cast<u64>(data))
                              : read_blocks(g, device, want, mine, lba{block}, 1, reinterpret_cast<u64>(data));
      if (want && !s.ok()) ++bad;
      if (writes || !want || !s.ok()) continue;
      const u32 look = io.whole ? io.block_words : 1;
      for (u32 w = 0; w < look; ++w) bad += load_piece(data + w) != block_word(drive, block, w, io.block_words) ? 1 : 0;
    }
    if (bad != 0) device_ref<u64>(*io.wrong).fetch_add(bad, relaxed);
  }

 private:
  // A block is always written with the same words, so that every later read can be checked whatever came before it.
  template <thread_group G>
  PENSTOCK_FN void fill(G const& g, bool want, u32 drive, u64 block, u64* data) const {
    const u32 words = !want ? 0 : io.whole ? io.block_words : 1;
    for (u32 w = 0; w < words; ++w) data[w] = block_word(drive, block, w, io.block_words);
    g.sync();
  }
};

/// One run: as many threads as fit, or fewer.
struct io_job {
  u64 threads = 0;  ///< 0: as many as fit
  u32 units = 0;    ///< SMs; 0: all
};

// One per executor, in the translation unit that can compile it.
kernel_facts run_commands_cpu(executor& on, io_job const& job, run_commands const& body);
kernel_facts run_commands_cuda(executor& on, io_job const& job, run_commands const& body);
void prepare_commands_cuda(executor& on, run_commands const& body);
/// How many threads a run has at once.
u64 threads_of(executor& on, io_job const& job);

}  // namespace penstock::bench
