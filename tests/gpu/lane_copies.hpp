// Blocks of a drive, moved and checked by the lanes of a grid, without a cache: each lane has a piece of its own.
#pragma once

#include "penstock/executor/launch.hpp"
#include "penstock/queue/block_io.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Pieces of one item; lanes share them out.
inline constexpr u32 pieces_of_item = 32;

struct lane_copies {
  block_device_view device;
  block_request* requests = nullptr;  ///< [pieces]
  u64* data = nullptr;                ///< [pieces * piece_words]
  u64* wrong = nullptr;               ///< words that were not what lies on the drive
  u64* failed = nullptr;              ///< commands
  u64 pieces = 0;
  u32 piece_words = 0;
  u64 salt = 0;  ///< of the stamps
  bool writes = false;

  PENSTOCK_FN u64 word_at(u64 piece, u32 w) const { return stamp(piece * piece_words + w) ^ salt; }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      for (u32 turn = 0; turn < pieces_of_item; turn += size(g)) move(g, item * pieces_of_item + turn + index_in(g));
    }
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void move(G const& g, u64 piece) const {
    const bool mine = piece < pieces;
    const u64 at = mine ? piece : 0;
    u64* const buffer = data + at * piece_words;
    const u32 blocks = piece_words * 8 >> device.block_shift;
    if (mine) {
      for (u32 w = 0; w < piece_words; ++w) device_ref<u64>(buffer[w]).store(writes ? word_at(at, w) : 0, relaxed);
    }
    submit_blocks(g, device, writes ? nvme::opcode::write : nvme::opcode::read, mine, requests[at], lba{at * blocks}, blocks,
                  reinterpret_cast<u64>(buffer));
    const status outcome = wait_blocks(g, device, mine, requests[at]);
    if (!mine) return;
    u64 bad = 0;
    for (u32 w = 0; w < piece_words; ++w) bad += device_ref<u64>(buffer[w]).load(relaxed) != word_at(at, w) ? 1 : 0;
    if (!outcome.ok()) device_ref<u64>(*failed).fetch_add(1, relaxed);
    if (bad != 0) device_ref<u64>(*wrong).fetch_add(bad, relaxed);
  }
};

}  // namespace penstock::test
