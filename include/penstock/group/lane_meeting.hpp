// Where lanes of a warp meet again that a slow path has parted.
//
// While some lanes of a warp are in the slow path, others wait where the compiler has put a meeting (BSYNC) behind the loop or
// the branch that they have left. Each YIELD and each sleep of the former lets the latter go (docs/MISS_PATH.md), a warp
// becomes many groups, and each of these then misses by itself. So lanes that come to an access while others of their warp are
// inside one, or wait here, wait here, too, until those have come round, and go on together. A whole warp has no others.
//
// Invariants. The set that arrives changes only when it opens, which it does only while it is empty, and as its lanes leave it;
// a lane leaves it behind the sync of all of them. So all lanes of a set read the same set, and sync with one mask. Progress: a
// lane that has waited for `longest_ns` opens a set whatever others do, as soon as those that arrive have gone on, which
// wait for nothing but each other.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/warp.hpp"

namespace penstock {

/// Of one warp, in memory that all of it reach, its block's. Whatever the words hold before the warp comes here for the first
/// time. Those that say whose they are come first: memory is used from its beginning on.
struct alignas(16) lane_meeting {
  u64 owner;   ///< the number of the warp whose words these are
  u64 check;   ///< ~owner
  u64 gate;    ///< lanes that wait << 32 | lanes that arrive: may go on
  u32 inside;  ///< lanes that have gone on and not left yet
  u32 of;      ///< what those are at, a hash; of lanes that have been waited for in vain, its complement: a hint

#if defined(__CUDACC__)
  template <class T>
  using block_ref = cuda::atomic_ref<T, cuda::thread_scope_block>;
#else
  template <class T>
  using block_ref = device_ref<T>;
#endif

  /// How long a lane waits for others.
  struct patience {
    u64 round_ns = 64 * one_microsecond_ns;    ///< for those that have left, to come round
    u64 longest_ns = 16 * one_millisecond_ns;  ///< in all: what those inside wait for may be this lane's to give back
  };

  /// Whether lanes beside `mine` are inside, or wait, at the same. A hint.
  PENSTOCK_FN bool has_others([[maybe_unused]] u32 mine, [[maybe_unused]] u32 at) const {
#if PENSTOCK_ON_DEVICE
    u32 arriving, waiting, in, what;
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(arriving), "=r"(waiting), "=r"(in), "=r"(what)
                 : "r"(static_cast<u32>(__cvta_generic_to_shared(&gate)))
                 : "memory");
    return ((arriving | waiting | in) & ~mine) != 0 && what == at;
#else
    return false;
#endif
  }

  /// Waits for those that are near, and then calls sync(lanes) with those that go on together, this one among them. `self`:
  /// this lane's bit. `warp`: no other's number, of all that the words may have belonged to.
  template <class Sync>
  PENSTOCK_FN u32 arrive(u64 warp, u32 self, u32 at, Sync const& sync, patience most) {
    if (!take_over(warp)) return self;
    block_ref<u64> all(gate);
    all.fetch_or(u64{self} << 32, relaxed);
    const u64 begun = now_ns();
    u64 quiet_since = 0;
    bool waited = false;
    u32 together = 0;
    for (;;) {
      u64 seen = all.load(relaxed);
      together = static_cast<u32>(seen);
      if ((together & self) != 0) break;
      const bool any_inside = block_ref<u32>(inside).load(relaxed) != 0;
      const u32 what = block_ref<u32>(of).load(relaxed);
      const bool near = any_inside && what == at;
      const u64 now = now_ns();
      quiet_since = near ? 0 : quiet_since == 0 ? now : quiet_since;
      waited = waited || near;
      const bool in_vain = now - begun > most.longest_ns;
      const bool opens = in_vain || (!near && (!waited || now - quiet_since > most.round_ns));
      if (together == 0 && opens && all.compare_exchange_strong(seen, seen >> 32, relaxed, relaxed)) {
        together = static_cast<u32>(seen >> 32);
        // Lanes that hold what those inside wait for would else wait at each of their reads.
        block_ref<u32>(of).store(any_inside && (in_vain || what == ~at) ? ~at : at, relaxed);
        break;
      }
      let_others_run(nap_ns);
    }
    sync(together);
    return together;
  }
  template <class Sync>
  PENSTOCK_FN u32 arrive(u64 warp, u32 self, u32 at, Sync const& sync) {
    return arrive(warp, self, at, sync, patience{});
  }
  /// Behind the last that is done with the set that `arrive` gave.
  PENSTOCK_FN void enter(u32 self) {
    block_ref<u32>(inside).fetch_or(self, relaxed);
    block_ref<u64>(gate).fetch_and(~u64{self}, relaxed);
  }
  PENSTOCK_FN void leave(u32 self) { block_ref<u32>(inside).fetch_and(~self, relaxed); }

 private:
  static constexpr u32 nap_ns = 256;

  // False: it takes too long.
  PENSTOCK_FN bool take_over(u64 warp) {
    block_ref<u64> whose(owner), checked(check);
    PENSTOCK_UNROLL_BY(1)
    for (u32 round = 0; round < 1024; ++round) {
      u64 seen = whose.load(acquire);
      const u64 taking = warp + 1;
      if (seen == warp && checked.load(relaxed) == ~warp) return true;
      if (seen != taking && whose.compare_exchange_strong(seen, taking, relaxed, relaxed)) {
        block_ref<u64>(gate).store(0, relaxed);
        block_ref<u32>(inside).store(0, relaxed);
        block_ref<u32>(of).store(0, relaxed);
        checked.store(~warp, release);
        whose.store(warp, release);
        return true;
      }
      let_others_run(nap_ns);
    }
    return false;
  }
};

/// Which call lanes meet in. One meeting for each: lanes that go on together go through the same code.
enum class meeting_in : u32 { reads, tries, changes, files };

/// This warp's; null where a thread has no lanes beside it.
template <meeting_in Call>
PENSTOCK_FN lane_meeting* this_meeting() {
#if PENSTOCK_ON_DEVICE
  __shared__ lane_meeting meetings[32];
  u32 x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));  // where it is asked for: a loop has no register for it
  return &meetings[(x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32];
#else
  return nullptr;
#endif
}

/// Whether the lanes that are here are parted from others of their warp that are at the same. A hint.
template <meeting_in Call>
PENSTOCK_FORCE_INLINE bool lanes_are_parted([[maybe_unused]] u32 at) {
#if PENSTOCK_ON_DEVICE
  const u32 here = warp::passing().members();
  return here != 0xffffffffu && this_meeting<Call>()->has_others(here, at);
#else
  return false;
#endif
}

/// Calls use(group) for the lanes of a group and those of their warp that they meet, of which the group then has those that are
/// at the same: `what` and `part` are equal. `process`: a random number of it.
template <class Use>
PENSTOCK_FN auto with_others(lone_thread const& g, lane_meeting*, u64 /*process*/, u32 /*at*/, u64 /*what*/, u32 /*part*/,
                             Use const& use) {
  return use(g);
}

#if defined(__CUDACC__)
template <class Use>
PENSTOCK_FN auto with_others(warp const& g, [[maybe_unused]] lane_meeting* meeting, [[maybe_unused]] u64 process,
                             [[maybe_unused]] u32 at, [[maybe_unused]] u64 what, [[maybe_unused]] u32 part, Use const& use) {
#if PENSTOCK_ON_DEVICE
  if (g.members() == 0xffffffffu) return use(g);
  u64 grid;
  asm("mov.u64 %0, %%gridid;" : "=l"(grid));
  const u64 block = blockIdx.x + u64{gridDim.x} * (blockIdx.y + u64{gridDim.y} * blockIdx.z);
  const u64 number = (grid << 32 ^ block) * 0x9e3779b97f4a7c15ull ^ process;
  const u32 self = 1u << g.rank();
  const u32 all = meeting->arrive(number, self, at, [](u32 lanes) { __syncwarp(lanes); });
  const u32 mine = __match_any_sync(all, static_cast<unsigned long long>(what)) & __match_any_sync(all, part);
  meeting->enter(self);
  const auto result = use(warp::met(mine));
  meeting->leave(self);
  return result;
#else
  return use(g);
#endif
}
#endif

}  // namespace penstock
