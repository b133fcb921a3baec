// Which parts of a file may have dirty lines: a bit for each 32nd of its range. A sync of a file that was not stored into looks
// at no line, any other at those of few parts, and no group waits for another.
//
// A store sets its bits in `dirty` after its lines are dirty. A sync counts itself in `flushing`, moves the bits of `dirty`
// there (set before cleared) and flushes all parts that `flushing` has, those of other syncs included. The last sync clears
// `flushing`; one that failed has set its bits in `dirty` again before.
//
// So a sync that begins after a store finds the store's bits, or a sync that found them after the store has ended: bits of
// `flushing` stay while this sync is counted, and a bit that has left `dirty` is there already.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/file/open_file.hpp"

namespace penstock {

/// Of one file. Its functions are of one thread, a group's leader.
class dirty_parts {
 public:
  static constexpr u32 parts = 32;

  PENSTOCK_FN dirty_parts(open_file& entry, u64 range_bytes, u64 line_bytes)
      : entry_(entry), part_bytes_(round_up(ceil_div(range_bytes, parts), line_bytes)) {}

  PENSTOCK_FN u64 part_bytes() const { return part_bytes_; }

  /// REQUIRES: bytes != 0, inside of the range.
  PENSTOCK_FN void add(u64 begin, u64 bytes) const {
    const u32 first = static_cast<u32>(begin / part_bytes_), last = static_cast<u32>((begin + bytes - 1) / part_bytes_);
    add_mask(~0u >> (parts - 1 - (last - first)) << first);
  }
  PENSTOCK_FN void add_mask(u32 mask) const {
    if (mask != 0) device_ref<u32>(entry_.dirty).fetch_or(mask, acq_rel);
  }

  /// The parts that a sync has to flush; 0: none, and there is nothing to end.
  PENSTOCK_FN u32 begin_flush() const {
    device_ref<u64> flushing(entry_.flushing);
    flushing.fetch_add(one_flush, acq_rel);
    const u32 found = device_ref<u32>(entry_.dirty).load(acquire);
    const u32 all = static_cast<u32>(flushing.fetch_or(found, acq_rel)) | found;
    if (found != 0) device_ref<u32>(entry_.dirty).fetch_and(~found, acq_rel);
    if (all == 0) end_flush(0);
    return all;
  }

  /// `failed`: parts that may have dirty lines still.
  PENSTOCK_FN void end_flush(u32 failed) const {
    add_mask(failed);
    device_ref<u64> flushing(entry_.flushing);
    u64 seen = flushing.fetch_sub(one_flush, acq_rel) - one_flush;
    while (seen != 0 && seen < one_flush) {
      if (flushing.compare_exchange_weak(seen, 0, acq_rel, acquire)) return;
    }
  }

 private:
  static constexpr u64 one_flush = u64{1} << 32;

  open_file& entry_;
  u64 part_bytes_;
};

}  // namespace penstock
