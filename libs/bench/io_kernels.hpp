// Kernels of `penstock bench io`: threads that read and write blocks.
#pragma once

#include "libs/bench/block_word.hpp"
#include "penstock/executor/launch.hpp"
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
  u32 in_flight = 1;                  ///< commands that a thread sends before it waits for the first
  bool sequential = false;            ///< blocks in their order
  bool whole = false;                 ///< look at every word that was read, not at the first of each block
  u64* data = nullptr;                ///< [in_flight][threads] blocks
  block_request* requests = nullptr;  ///< [in_flight][threads]
  u64* wrong = nullptr;               ///< commands that failed or brought the wrong bytes
};

/// A command per thread and item, all of a group's at once; of `in_flight` items before the first is waited for. Groups go
/// round the drives.
struct run_commands {
  io_data io;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    const u64 threads = range.step * size(g), thread = range.first * size(g) + index_in(g);
    const auto place = [&](u32 turn) { return turn * threads + thread; };
    const auto after = [&](u32 turn) { return turn + 1 < io.in_flight ? turn + 1 : 0; };
    u64 bad = 0, oldest = range.first;
    u32 next_turn = 0, oldest_turn = 0, under_way = 0;
    for (u64 item = range.first;; item += range.step) {
      const bool more = item < range.last;
      if (more) {
        start(g, command_of(g, item), place(next_turn));
        next_turn = after(next_turn);
        ++under_way;
      }
      if (more && under_way < io.in_flight) continue;
      if (under_way == 0) break;
      bad += finish(g, command_of(g, oldest), place(oldest_turn));
      oldest_turn = after(oldest_turn);
      oldest += range.step;
      --under_way;
    }
    if (bad != 0) device_ref<u64>(*io.wrong).fetch_add(bad, relaxed);
  }

 private:
  struct command {
    u32 drive;
    u64 block;
    bool writes, want;
  };

  template <thread_group G>
  PENSTOCK_FN command command_of(G const& g, u64 item) const {
    const u32 width = size(g) < io.lanes ? size(g) : io.lanes;
    const u32 lane = index_in(g);
    const u64 place = item / io.drives * width + lane + io.first;
    command c;
    // Drives in turn, shifted from round to round: else a group would ask one drive only, and each drive's queues would be
    // those of the few groups that do.
    c.drive = static_cast<u32>((item + item / io.drives) % io.drives);
    c.block = io.sequential ? place & (io.blocks - 1) : permute(place, io.blocks);
    c.writes = io.write_percent != 0 && item * 37 % 100 < io.write_percent;
    c.want = lane < width && item * width + lane < io.commands;
    return c;
  }

  // A block is always written with the same words, so that every later read can be checked whatever came before it.
  template <thread_group G>
  PENSTOCK_FN void start(G const& g, command c, u64 place) const {
    u64* const data = io.data + place * io.block_words;
    if (c.writes) {
      const u32 words = !c.want ? 0 : words_looked_at();
      for (u32 w = 0; w < words; ++w) data[w] = block_word(c.drive, c.block, w, io.block_words);
      g.sync();
    }
    const auto op = c.writes ? nvme::opcode::write : nvme::opcode::read;
    submit_blocks(g, io.devices[c.drive], op, c.want, io.requests[place], lba{c.block}, 1, reinterpret_cast<u64>(data));
  }

  // How many words of it were wrong; 1 for a command that failed.
  template <thread_group G>
  PENSTOCK_FN u64 finish(G const& g, command c, u64 place) const {
    u64* const data = io.data + place * io.block_words;
    const status s = wait_blocks(g, io.devices[c.drive], c.want, io.requests[place]);
    if (!c.want || !s.ok()) return c.want ? 1 : 0;
    u64 bad = 0;
    const u32 words = c.writes ? 0 : words_looked_at();
    for (u32 w = 0; w < words; ++w) bad += load_piece(data + w) != block_word(c.drive, c.block, w, io.block_words) ? 1 : 0;
    return bad;
  }

  PENSTOCK_FN u32 words_looked_at() const { return io.whole ? io.block_words : 1; }
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
