// Frames of GPUfs's buffer cache, and who gets one (SYSTOR 2016, sections 4.2 and 4.4).
//
// An allocator has a ring of its frames in the order of their last allocation. Those from `head` to `limit` are free, the rest
// is in use. To evict is to search from the tail (the least recently allocated frame) for one without pins, swap it with the
// one at the tail and move `limit` past it, under the allocator's lock. The locked list takes frames under the same lock, the
// ring by a compare-and-exchange of `head`. No operation waits: what finds no frame is repeated by the caller.
#pragma once

#include "libs/bench/gpufs_directory.hpp"

namespace penstock::bench {

/// A page's bytes lie in the frame of the same number.
///
/// Invariant: the thread that has set `claimed` (the allocator while the frame is free, then its allocator's caller) owns key
/// and bytes. A reader adds its pin first and looks at the key then, so a claim, which needs 0 pins, never takes a frame that
/// is read.
struct gpufs_frame {
  static constexpr u32 claimed = 1u << 31;
  static constexpr u32 filling = 1, ready = 2, failed = 3;  ///< states of a frame in the directory

  u64 key = 0;
  u32 pins = claimed;  ///< beside `claimed`
  u32 state = 0;

  PENSTOCK_FN bool try_pin() {
    if ((device_ref<u32>(pins).fetch_add(1, acquire) & claimed) == 0) return true;
    device_ref<u32>(pins).fetch_sub(1, relaxed);
    return false;
  }
  /// What this thread has read of the frame, it read before.
  PENSTOCK_FN void unpin() { device_ref<u32>(pins).fetch_sub(1, release); }
  PENSTOCK_FN bool try_take() {
    u32 none = 0;
    return device_ref<u32>(pins).compare_exchange_strong(none, claimed, acquire, relaxed);
  }
  /// Ends a claim and leaves `count` pins. Pins that readers add and take back meanwhile stay theirs.
  PENSTOCK_FN void end_claim(u32 count) { device_ref<u32>(pins).fetch_sub(claimed - count, release); }
};

/// One allocator. In use are the positions from limit - count to head; position p is entry p % count.
struct alignas(128) gpufs_ring {
  u64 head = 0;
  alignas(64) u64 limit = 0;  ///< changes under the lock
  u64 count = 0;
  u32* entries = nullptr;  ///< [count]: a frame, and whether the group that its position went to has read it
  u32 lock = 0;
};

/// Trivially copyable; the host-side `gpufs_cache` owns what it points at. All of it is called by one thread of a group.
struct gpufs_frames {
  static constexpr u32 no_frame = ~0u;

  gpufs_allocation kind = gpufs_allocation::locked_list;
  u32 rings_count = 1;
  gpufs_ring* rings = nullptr;
  gpufs_frame* frames = nullptr;
  u64* evictions = nullptr;  ///< counted

  /// A claimed frame that is in no directory; `no_frame` if there was none to be had at once.
  PENSTOCK_FN u32 try_allocate(gpufs_directory const& directory, u32 group) const {
    gpufs_ring& ring = rings[group % rings_count];
    return kind == gpufs_allocation::ring ? take_from_ring(directory, ring) : take_from_list(directory, ring);
  }

 private:
  static constexpr u32 taken = 1u << 31;      ///< beside the frame of an entry
  static constexpr u64 max_search = 1024;     ///< positions that are looked at for a victim
  static constexpr u64 low_water_share = 16;  ///< the ring evicts ahead while fewer than a 16th are free
  static constexpr u64 max_evicted_at_once = 8;

  PENSTOCK_FN u32 take_entry(gpufs_ring& ring, u64 position) const {
    u32& entry = ring.entries[position % ring.count];
    const u32 frame = device_ref<u32>(entry).load(relaxed);
    device_ref<u32>(entry).store(frame | taken, release);
    return frame;
  }

  PENSTOCK_FN u32 take_from_list(gpufs_directory const& directory, gpufs_ring& ring) const {
    if (!gpufs_try_lock(ring.lock)) return no_frame;
    u32 frame = no_frame;
    const u64 head = device_ref<u64>(ring.head).load(relaxed);
    if (head != device_ref<u64>(ring.limit).load(relaxed) || evict_one(directory, ring)) {
      frame = take_entry(ring, head);
      device_ref<u64>(ring.head).store(head + 1, relaxed);
    }
    gpufs_unlock(ring.lock);
    return frame;
  }

  PENSTOCK_FN u32 take_from_ring(gpufs_directory const& directory, gpufs_ring& ring) const {
    u32 frame = no_frame;
    // `limit` first: it never falls, so a head below it is free even if others move it on.
    const u64 limit = device_ref<u64>(ring.limit).load(acquire);
    u64 head = device_ref<u64>(ring.head).load(relaxed);
    while (head < limit && frame == no_frame) {
      if (device_ref<u64>(ring.head).compare_exchange_weak(head, head + 1, relaxed)) frame = take_entry(ring, head);
    }
    const u64 low = frame == no_frame ? 1 : ring.count / low_water_share;
    if (head + low > limit && gpufs_try_lock(ring.lock)) {
      for (u64 k = 0; k < max_evicted_at_once && evict_one(directory, ring); ++k) {}
      gpufs_unlock(ring.lock);
    }
    return frame;
  }

  /// REQUIRES: the ring's lock.
  PENSTOCK_FN bool evict_one(gpufs_directory const& directory, gpufs_ring& ring) const {
    const u64 limit = device_ref<u64>(ring.limit).load(relaxed), tail = limit - ring.count;
    const u64 head = device_ref<u64>(ring.head).load(relaxed);
    u64 at = tail % ring.count;
    u32& last = ring.entries[at];
    const u32 at_tail = device_ref<u32>(last).load(acquire);
    // A position whose group has not read its entry yet must not be swapped: it would give one frame to two.
    if (tail == head || (at_tail & taken) == 0) return false;
    const u64 searched = head - tail < max_search ? head - tail : max_search;
    for (u64 k = 0; k < searched; ++k) {
      u32& entry = ring.entries[at];
      if (++at == ring.count) at = 0;
      const u32 found = device_ref<u32>(entry).load(acquire), frame = found & ~taken;
      if ((found & taken) == 0 || !frames[frame].try_take()) continue;
      if (!directory.try_erase(frames[frame].key, frame)) {
        frames[frame].end_claim(0);
        return false;
      }
      device_ref<u32>(entry).store(at_tail, relaxed);
      device_ref<u32>(last).store(frame, relaxed);
      device_ref<u64>(ring.limit).store(limit + 1, release);
      device_ref<u64>(*evictions).fetch_add(1, relaxed);
      return true;
    }
    return false;
  }
};

}  // namespace penstock::bench
