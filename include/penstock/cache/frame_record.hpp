// What is known of a frame; touched on misses only. Written by the owner of the claim; others may read it early and find old
// values, so to them it is a hint (which queue to harvest), or read after an acquire of the entry (`status`).
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/status.hpp"
#include "penstock/core/units.hpp"

namespace penstock {

struct frame_record {
  u64 owner;    ///< whose bytes the frame holds: dataset << 40 | line; `nobody` until it is used first
  u32 command;  ///< where its last fill was submitted: queue pair << 16 | slot
  u32 failure;  ///< packed status of its line's last fill (0 while it is under way) or, since that, of the last write that is
                ///< over

  static constexpr u64 nobody = ~0ull;
  static constexpr u32 line_bits = 40;

  PENSTOCK_FN static u64 line_of(u64 owner) { return owner & ((1ull << line_bits) - 1); }
  PENSTOCK_FN static u64 dataset_of(u64 owner) { return owner >> line_bits; }

  PENSTOCK_FN u64 load_owner() { return device_ref<u64>(owner).load(relaxed); }
  PENSTOCK_FN void store_owner(u32 dataset, u64 line) {
    device_ref<u64>(owner).store(static_cast<u64>(dataset) << line_bits | line, relaxed);
    store_failure({});
  }
  PENSTOCK_FN u32 load_command() { return device_ref<u32>(command).load(relaxed); }
  PENSTOCK_FN void store_command(u16 queue, u16 slot) {
    device_ref<u32>(command).store(static_cast<u32>(queue) << 16 | slot, relaxed);
  }
  PENSTOCK_FN status load_failure() { return unpack_status(device_ref<u32>(failure).load(relaxed)); }
  PENSTOCK_FN void store_failure(status s) { device_ref<u32>(failure).store(pack(s), relaxed); }
};
static_assert(sizeof(frame_record) == 16);

}  // namespace penstock
