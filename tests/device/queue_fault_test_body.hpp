// What the queue pair promises any group whose controller loses or delays completions: each command has exactly one answer, a
// good one has the right data, a time-out is a time-out.
#pragma once

#include "penstock/queue/result_sink.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Each command has a result and a block of memory of its own: one that was given up may still be written.
struct fault_reads_body {
  queue_pair_view<result_sink> queue;
  u32* results;  ///< [rounds * threads]
  u32* slots;    ///< [rounds * threads]
  u64* data;     ///< [rounds * threads * 64]
  u64 blocks;    ///< of the namespace
  u32 rounds;
  u32* late;    ///< counts answers `deadline`
  u32* broken;  ///< counts answers `controller_failed`

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 k = u64{round} * c.run.threads + c.thread;
      const u64 block = random_word(c.seed(), c.thread, round) % blocks;
      const result_sink::target to{results + k, slots + k};
      transfer t;
      t.command = nvme::transfer_command(nvme::opcode::read, 1, lba{block}, 1);
      t.address = reinterpret_cast<u64>(data + k * 64);
      t.bytes = 512;
      const status submitted = queue.submit(g, true, t, to);
      const status waited = wait_for(g, queue, submitted.ok(), to);
      answer(c, submitted.ok() ? waited : submitted, block, data + k * 64);
    }
  }

  PENSTOCK_FN void answer(test_context const& c, status outcome, u64 block, u64 const* words) const {
    if (outcome == make_status(failure::deadline)) {
      device_ref<u32>(*late).fetch_add(1, relaxed);
    } else if (outcome == make_status(failure::controller_failed)) {
      device_ref<u32>(*broken).fetch_add(1, relaxed);
    } else if (PENSTOCK_CHECK_EQ(*c.report, status{}, outcome)) {
      for (u32 w = 0; w < 64; ++w) {
        if (!PENSTOCK_CHECK_EQ(*c.report, stamp(block * 64 + w), load_piece(words + w))) break;
      }
    }
  }
};

}  // namespace penstock::test
