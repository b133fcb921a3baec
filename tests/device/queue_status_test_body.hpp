// What a controller says of a command reaches the lane that asked, and nobody else: each lane reads blocks whose number tells
// which status they end with.
#pragma once

#include "penstock/queue/result_sink.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

struct status_body {
  queue_pair_view<result_sink> queue;
  u32* results;      ///< [threads]
  u32* slots;        ///< [threads]
  u64* data;         ///< [threads * 64]
  u16 const* codes;  ///< status type << 8 | code of block k
  u32 codes_count;
  u32 rounds;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const result_sink::target to{results + c.thread, slots + c.thread};
    for (u32 round = 0; round < rounds; ++round) {
      const u32 block = static_cast<u32>((c.thread + u64{round} * c.run.threads + c.seed()) % codes_count);
      device_ref<u32>(*to.result).store(0, relaxed);
      transfer t;
      t.command = nvme::transfer_command(nvme::opcode::read, 1, lba{block}, 1);
      t.address = reinterpret_cast<u64>(data + c.thread * 64);
      t.bytes = 512;
      PENSTOCK_CHECK_EQ(*c.report, status{}, queue.submit(g, true, t, to));
      const status expected = codes[block] == 0 ? status{} : status{status_domain::nvme, codes[block]};
      PENSTOCK_CHECK_EQ(*c.report, expected, wait_for(g, queue, true, to));
      g.sync();
    }
  }
};

}  // namespace penstock::test
