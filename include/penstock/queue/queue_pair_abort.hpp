// What comes before a reset: the controller is asked to abort the commands that were given up. Those that it ends so cost their
// neighbours in the queue nothing, and where all end the queue is whole again. Included by queue_pair.hpp; PROTOCOLS.md has the
// steps. The host sends the commands (queue_pair::abort_late).
//
// Invariant. An identifier that is being aborted belongs to no command that has a waiter: it was given up, and comes alive
// again only when the slot's next command is given up as well, which fails the controller while `asked` stands. An abort that
// comes late therefore ends nothing else, and the controller's answer to it proves nothing: the quarantine ends with the
// command's own completion (30), as ever.
#pragma once

#include "penstock/queue/queue_pair_harvest.hpp"

namespace penstock {

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::take_harvest_lock(G const& g, u64 patience_ns) const {
  backoff wait(patience_ns);
  for (bool in_time = true;; in_time = from_leader(g, wait.pause()) != 0) {
    const bool got = from_leader(g, is_leader(g) && device_ref<u32>(state->harvest_lock).exchange(1, acquire) == 0) != 0;
    g.sync();  // what the last holder wrote is every member's
    if (got || !in_time) return got;
  }
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN u32 queue_pair_view<Sink>::name_late(G const& g, u64 patience_ns, u16* ids, u32 most) const {
  if (!take_harvest_lock(g, patience_ns)) return 0;
  u32 named = 0;
  if (is_leader(g) && device_ref<u32>(state->stopped).load(relaxed) == 0) {
    for (u32 slot = 0; slot < depth && named < most; ++slot) {
      quarantine& q = quarantines[slot];
      if (device_ref<u32>(q.held).load(relaxed) == 0) continue;
      q.asked = 1;
      ids[named++] = static_cast<u16>(slot + depth * (generations[slot] ^ 1u));
    }
  }
  g.sync();
  if (is_leader(g)) system_ref<u32>(state->harvest_lock).store(0, release);
  return static_cast<u32>(from_leader(g, named));
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::any_late(G const& g) const {
  bool late = false;
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
    late |= quarantines[slot].asked != 0 && device_ref<u32>(quarantines[slot].held).load(relaxed) != 0;
  }
  return any(g.ballot(late));
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN u32 queue_pair_view<Sink>::await_late(G const& g, u64 patience_ns) const {
  backoff wait(patience_ns);
  bool in_time = true;
  do {
    progress(g);
    in_time = any_late(g) && from_leader(g, wait.pause()) != 0;
  } while (in_time);
  // Without the lock the identifiers stay dead until a reset, which is no less right.
  if (!take_harvest_lock(g, patience_ns + expiry_period_ns)) return 0;
  u32 ended = 0;
  if (is_leader(g)) {
    for (u32 slot = 0; slot < depth; ++slot) {
      quarantine& q = quarantines[slot];
      ended += q.asked != 0 && device_ref<u32>(q.held).load(relaxed) == 0 ? 1 : 0;
      q.asked = 0;
    }
  }
  g.sync();
  if (is_leader(g)) system_ref<u32>(state->harvest_lock).store(0, release);
  return static_cast<u32>(from_leader(g, ended));
}

}  // namespace penstock
