// What a drive promises any group that asks it through a queue pair: what was written is what is read, byte for byte.
#pragma once

#include "penstock/queue/result_sink.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Each thread writes blocks of its own, forgets them, and reads them back; some threads leave out some rounds.
struct writes_body {
  queue_pair_view<result_sink> queue;
  u32* results;  ///< [threads]
  u32* slots;    ///< [threads]
  u64* data;     ///< [threads * bytes / 8]
  u32 bytes;     ///< of a command, a power of two up to 4096; buffers are aligned to it
  u32 rounds;    ///< the namespace has threads * rounds * bytes
  u64 salt;      ///< told from the runs before

  template <thread_group G>
  PENSTOCK_FN status run(G const& g, bool want, nvme::opcode op, u64 place, u64* mine, result_sink::target const& to) const {
    device_ref<u32>(*to.result).store(0, relaxed);
    transfer t;
    t.command = nvme::transfer_command(op, 1, lba{place * (bytes / 512)}, bytes / 512);
    t.address = reinterpret_cast<u64>(mine);
    t.bytes = bytes;
    const status submitted = queue.submit(g, want, t, to);
    const status outcome = wait_for(g, queue, want, to);
    return submitted.ok() ? outcome : submitted;
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const result_sink::target to{results + c.thread, slots + c.thread};
    const u32 words = bytes / 8;
    u64* mine = data + u64{c.thread} * words;
    for (u32 round = 0; round < rounds; ++round) {
      const bool want = random_word(c.seed(), c.thread, round) % 4 != 0;
      const u64 place = u64{c.thread} * rounds + round;
      for (u32 w = 0; w < words; ++w) device_ref<u64>(mine[w]).store(stamp(place * words + w) ^ salt, relaxed);
      PENSTOCK_CHECK_EQ(*c.report, status{}, run(g, want, nvme::opcode::write, place, mine, to));
      for (u32 w = 0; w < words; ++w) device_ref<u64>(mine[w]).store(0, relaxed);
      PENSTOCK_CHECK_EQ(*c.report, status{}, run(g, want, nvme::opcode::read, place, mine, to));
      for (u32 w = 0; want && w < words; ++w) {
        if (!PENSTOCK_CHECK_EQ(*c.report, stamp(place * words + w) ^ salt, load_piece(mine + w))) break;
      }
      g.sync();
    }
  }
};

}  // namespace penstock::test
