// What the queue pair promises any group: each command submitted ends in exactly one result, and its data is there then.
#pragma once

#include "penstock/queue/result_sink.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

inline constexpr u32 test_block = 512;

/// Lanes read random blocks, sometimes none, and look at every word.
struct reads_body {
  queue_pair_view<result_sink> queue;
  u32* results;  ///< [threads]
  u32* slots;    ///< [threads]
  u64* data;     ///< [threads * 64]
  u64 blocks;    ///< of the namespace
  u32 rounds;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const result_sink::target to{results + c.thread, slots + c.thread};
    u64* mine = data + c.thread * (test_block / 8);
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), c.thread, round);
      const bool want = draw % 4 != 0;
      const u64 block = (draw >> 8) % blocks;
      device_ref<u32>(*to.result).store(0, relaxed);
      transfer t;
      t.command = nvme::transfer_command(nvme::opcode::read, 1, lba{block}, 1);
      t.address = reinterpret_cast<u64>(mine);
      t.bytes = test_block;
      PENSTOCK_CHECK_EQ(*c.report, status{}, queue.submit(g, want, t, to));
      PENSTOCK_CHECK_EQ(*c.report, status{}, wait_for(g, queue, want, to));
      for (u32 w = 0; want && w < test_block / 8; ++w) {
        if (!PENSTOCK_CHECK_EQ(*c.report, stamp(block * (test_block / 8) + w), load_piece(mine + w))) break;
      }
      g.sync();
    }
  }
};

}  // namespace penstock::test
