// Completion by service: a few resident groups move all queues of a cache, and a waiter for a line only looks at it. Without a
// service, the waiter does both (inline). They are the background cleaner, too: they write dirty lines back ahead of need.
//
// While no group serves, `serving` is 0 and all wait inline; so a service that leaves takes nothing with it. A waiter's last
// look moves the queue in either mode (W7).
#pragma once

#include "penstock/write_back/cleaner.hpp"

namespace penstock {

/// Words between a service and its host; in memory that both reach.
struct service_control {
  u32 stop = 0;     ///< the host wants it to leave
  u32 running = 0;  ///< 1 from its first round on
  u32 left = 0;     ///< 1 once it has left, stopped or idle
};

/// Words between the servers.
struct service_shared {
  u32 leaving = 0;       ///< 1: all are to leave
  u64 last_work_ns = 0;  ///< when any of them moved something, to a millisecond
};

/// What server `self` of `servers` does until it is stopped or, where `idle_ns` is not 0, has had nothing to do for so long: a
/// kernel that is never stopped costs the whole machine. Collective.
template <thread_group G, class Cache, class Idle>
PENSTOCK_FN void serve_cache_queues(G const& g, Cache const& cache, service_control& control, service_shared& shared, u32 self,
                                    u32 servers, u64 idle_ns, Idle& idle) {
  constexpr u64 look_every_ns = 20 * one_microsecond_ns;
  u64 last_look = 0, last_work = now_ns();
  if (is_leader(g)) raise_to(shared.last_work_ns, last_work);
  if (self == 0 && is_leader(g)) {
    device_ref<u32>(*cache.serving).store(1, relaxed);
    system_ref<u32>(control.running).store(1, release);
  }
  for (;;) {
    bool moved = false;
    for (u32 q = self; q < cache.queues_count; q += servers) {
      auto const& queue = cache.queues[q];
      // Only progress drains landed lines without a waiter.
      if (queue.bounces != nullptr || queue.stirs(g)) moved |= queue.progress(g);
    }
    moved |= clean_in_background(g, cache);
    moved ? idle.reset() : idle.wait();
    const u64 now = from_leader(g, now_ns());
    if (moved && now - last_work > one_millisecond_ns) {
      last_work = now;
      if (is_leader(g)) raise_to(shared.last_work_ns, now);
    }
    if (from_leader(g, device_ref<u32>(shared.leaving).load(relaxed)) != 0) return;
    if (self != 0 || now - last_look < look_every_ns) continue;
    last_look = now;
    // Server 0 speaks for all: the word of the host may be a trip over the link away.
    const bool stopped = is_leader(g) && system_ref<u32>(control.stop).load(relaxed) != 0;
    const u64 worked = device_ref<u64>(shared.last_work_ns).load(relaxed);
    const bool bored = idle_ns != 0 && now > worked && now - worked > idle_ns;
    if (from_leader(g, stopped || bored) == 0) continue;
    if (is_leader(g)) {
      device_ref<u32>(*cache.serving).store(0, relaxed);
      device_ref<u32>(shared.leaving).store(1, relaxed);
      system_ref<u32>(control.left).store(1, release);
    }
  }
}

}  // namespace penstock
