// What block_io promises any group: a command moves the blocks that it names, whatever else is in flight, and ends in a status
// of its own.
#pragma once

#include "penstock/queue/block_io.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

inline constexpr u32 block_bytes = 512;

/// What a thread works with: requests and buffers of its own.
struct block_bed {
  block_device_view device;
  block_request* requests;  ///< [threads * at_once]
  u64* data;                ///< [threads * at_once * room / 8]
  u32 room;                 ///< bytes of one buffer
  u32 at_once;              ///< commands of one thread

  PENSTOCK_FN block_request& request(u32 thread, u32 k) const { return requests[u64{thread} * at_once + k]; }
  PENSTOCK_FN u64* buffer(u32 thread, u32 k) const { return data + (u64{thread} * at_once + k) * (room / 8); }
  /// First block of the part of the namespace that is one request's alone.
  PENSTOCK_FN u64 place(u32 thread, u32 k) const { return (u64{thread} * at_once + k) * (room / block_bytes); }

  template <thread_group G>
  PENSTOCK_FN void submit(G const& g, nvme::opcode op, bool want, u32 thread, u32 k, u32 blocks) const {
    submit_blocks(g, device, op, want, request(thread, k), lba{place(thread, k)}, blocks,
                  reinterpret_cast<u64>(buffer(thread, k)));
  }
};

PENSTOCK_FN inline void fill(u64* buffer, u32 words, u64 first, u64 salt) {
  for (u32 w = 0; w < words; ++w) device_ref<u64>(buffer[w]).store(salt == 0 ? 0 : stamp(first + w) ^ salt, relaxed);
}

/// Each thread writes several pieces at once and reads them back, of all sizes up to the limit; some want nothing, and a
/// command that is in flight is left alone by calls that want nothing of it.
struct copies_body {
  block_bed bed;
  u32 rounds;

  PENSTOCK_FN u32 blocks_of(u64 draw) const {
    const u32 most = bed.room / block_bytes;
    const u32 sizes[] = {1, 8, 9, 16, 17, most, most - 1, 3};
    const u32 blocks = sizes[draw % 8];
    return blocks != 0 && blocks <= most ? blocks : 1;
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      run(g, c, round, nvme::opcode::write);
      PENSTOCK_CHECK_EQ(*c.report, status{}, flush_blocks(g, bed.device, c.thread % 2 == 0, bed.request(c.thread, 0)));
      run(g, c, round, nvme::opcode::read);
      g.sync();
    }
  }

  template <thread_group G>
  PENSTOCK_FN void run(G const& g, test_context const& c, u32 round, nvme::opcode op) const {
    const bool writes = op == nvme::opcode::write;
    for (u32 k = 0; k < bed.at_once; ++k) {
      const u64 draw = random_word(c.seed(), u64{c.thread} * bed.at_once + k, round);
      const u32 blocks = blocks_of(draw >> 8);
      const u32 words = blocks * (block_bytes / 8);
      fill(bed.buffer(c.thread, k), words, bed.place(c.thread, k) * (block_bytes / 8), writes ? draw | 1 : 0);
      bed.submit(g, op, draw % 4 != 0, c.thread, k, blocks);
      bed.submit(g, op, false, c.thread, k, 0);
    }
    for (u32 turn = 0; turn < bed.at_once; ++turn) {
      const u32 k = writes ? turn : bed.at_once - 1 - turn;  // not in the order in which they were sent
      const u64 draw = random_word(c.seed(), u64{c.thread} * bed.at_once + k, round);
      const bool want = draw % 4 != 0;
      PENSTOCK_CHECK_EQ(*c.report, status{}, wait_blocks(g, bed.device, false, bed.request(c.thread, k)));
      PENSTOCK_CHECK_EQ(*c.report, status{}, wait_blocks(g, bed.device, want, bed.request(c.thread, k)));
      if (!want || writes) continue;
      const u32 words = blocks_of(draw >> 8) * (block_bytes / 8);
      const u64 first = bed.place(c.thread, k) * (block_bytes / 8);
      for (u32 w = 0; w < words; ++w) {
        if (!PENSTOCK_CHECK_EQ(*c.report, stamp(first + w) ^ (draw | 1), load_piece(bed.buffer(c.thread, k) + w))) break;
      }
    }
  }
};

/// Some lanes ask for what the device does not have, and hear so; the others are served, and all are the next time.
struct refusals_body {
  block_bed bed;
  u32 rounds;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      block_request& mine = bed.request(c.thread, 0);
      u64* buffer = bed.buffer(c.thread, 0);
      const u64 address = reinterpret_cast<u64>(buffer);
      const u64 kind = random_word(c.seed(), c.thread, round) % 6;
      u64 start = bed.place(c.thread, 0);
      u32 blocks = 1;
      if (kind == 0) blocks = 0;
      if (kind == 1) blocks = bed.device.most_blocks + 1;
      if (kind == 2) start = bed.device.blocks;
      if (kind == 3) start = bed.device.blocks - 1, blocks = 2;
      if (kind == 4) start = ~u64{0};
      const status expected = kind < 5 ? make_status(failure::out_of_range) : status{};
      PENSTOCK_CHECK_EQ(*c.report, expected, read_blocks(g, bed.device, true, mine, lba{start}, blocks, address));
      start = bed.device.blocks - 1;  // the last block there is
      fill(buffer, block_bytes / 8, 0, 0);
      PENSTOCK_CHECK_EQ(*c.report, status{}, read_blocks(g, bed.device, true, mine, lba{start}, 1, address));
      PENSTOCK_CHECK_EQ(*c.report, stamp(start * (block_bytes / 8)), load_piece(buffer));
      start = bed.place(c.thread, 0);  // nobody else's
      PENSTOCK_CHECK_EQ(*c.report, status{}, write_blocks(g, bed.device, round % 2 == 0, mine, lba{start}, 1, address));
      g.sync();
    }
  }
};

/// Every command ends with `outcome`, and a request may be used again after it.
struct failures_body {
  block_bed bed;
  u32 rounds;
  status outcome;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const bool want = random_word(c.seed(), c.thread, round) % 4 != 0;
      block_request& mine = bed.request(c.thread, round % bed.at_once);
      const u64 address = reinterpret_cast<u64>(bed.buffer(c.thread, round % bed.at_once));
      const status found = read_blocks(g, bed.device, want, mine, lba{c.thread}, 1, address);
      PENSTOCK_CHECK_EQ(*c.report, want ? outcome : status{}, found);
    }
  }
};

}  // namespace penstock::test
