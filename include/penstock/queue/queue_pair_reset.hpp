// Reset: how a queue pair comes back whose controller was given up, or holds something in quarantine. Included by
// queue_pair.hpp; the steps are PROTOCOLS.md's.
//
// Invariants. Between `close` and `reopen` no ticket is given. After `quiesce` no thread holds a ticket, rings or harvests;
// only the copier of a landed buffer may still be at it, which `answer_all` waits for. Tickets go on from the next multiple of
// the depth, so a slot's word never has a value again that it had before: a thread that slept through a reset finds its
// compare-and-swap refused.
#pragma once

#include "penstock/queue/queue_pair.hpp"

namespace penstock {

// (1) Whose fetch_add comes later gets the bit, and withdraws without another look.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::close(G const& g) const {
  if (is_leader(g)) {
    const u64 given = device_ref<u64>(state->ticket).fetch_or(queue_state::closed, acq_rel);
    // One that is closed already is taken up where an earlier reset failed; what was added since then counts for nothing.
    if ((given & queue_state::closed) == 0) device_ref<u64>(state->given).store(given, relaxed);
    device_ref<u32>(state->stopped).fetch_or(queue_state::closing, release);
  }
  g.sync();
}

// (2) and the locks of (3). The holder of one has no more than a ring to walk through.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::quiesce(G const& g, u64 patience_ns) const {
  backoff wait(patience_ns);
  for (bool in_time = true;; in_time = from_leader(g, wait.pause()) != 0) {
    const bool quiet = from_leader(g, is_leader(g) && try_quiesce()) != 0;
    g.sync();  // what the leader has acquired is every member's
    if (quiet || !in_time) return quiet;
  }
}

template <completion_sink Sink>
PENSTOCK_FN bool queue_pair_view<Sink>::try_quiesce() const {
  const u64 given = device_ref<u64>(state->given).load(relaxed) - device_ref<u64>(state->skipped).load(relaxed);
  if (device_ref<u64>(state->settled).load(acquire) != given) return false;
  if (device_ref<u32>(state->ring_lock).exchange(1, acquire) != 0) return false;
  if (device_ref<u32>(state->harvest_lock).exchange(1, acquire) == 0) return true;
  system_ref<u32>(state->ring_lock).store(0, release);
  return false;
}

// (4) and (5).
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::answer_all(G const& g, u64 patience_ns) const {
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) answer(slot);
  // What has landed is good, and only wants its copy.
  for (u32 slot = 0; bounces != nullptr && slot < depth; ++slot) drain(g, slot);
  backoff wait(patience_ns);
  for (bool in_time = true;; in_time = from_leader(g, wait.pause()) != 0) {
    bool copied = false;
    for (u32 slot = index_in(g); slot < depth; slot += size(g)) copied |= being_drained(slot);
    if (!any(g.ballot(copied))) break;
    if (!in_time) return false;
  }
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) end_quarantines(slot);
  g.sync();
  return true;
}

/// A command that was published, rung or not. Its frame is free: nothing writes there any more.
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::answer(u32 slot) const {
  const u64 word = load_word(slot);
  if (phase_of(word) != slot_phase::published) return;
  // No compare-and-swap: a published slot is the harvest lock's.
  order_before_telling();
  Sink::finish(contexts[slot].to, make_status(failure::resetting));
  device_ref<u64>(state->reset).fetch_add(1, relaxed);
  device_ref<u64>(words[slot]).store(next_free(word), release);
}

/// Under both locks a slot in this phase belongs to a command that was given up, or to a group that copies.
template <completion_sink Sink>
PENSTOCK_FN bool queue_pair_view<Sink>::being_drained(u32 slot) const {
  const u64 word = load_word(slot);
  quarantine const& q = quarantines[slot];
  const bool given_up = q.failed != 0 || (q.stuck != 0 && q.ticket == word / 4);
  return phase_of(word) == slot_phase::finishing && !given_up;
}

/// Of up to two commands: one that expired in an earlier lap, and one that was ended with the controller.
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::end_quarantines(u32 slot) const {
  quarantine& q = quarantines[slot];
  if (device_ref<u32>(q.held).exchange(0, relaxed) != 0) {
    Sink::resolve(q.to, q.bounce == 0);
    if (q.bounce != 0) spares[device_ref<u32>(state->spare_buffers).fetch_add(1, relaxed)] = q.bounce;
  }
  if (q.failed != 0) Sink::resolve(contexts[slot].to, contexts[slot].exposed);
  q.failed = q.stuck = q.asked = 0;
}

// (6), but for the ticket.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::start_over(G const& g) const {
  const u64 given = from_leader(g, device_ref<u64>(state->given).load(relaxed));
  const u64 first = (given + depth - 1) / depth * depth;
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
    generations[slot] = 0;
    device_ref<u64>(words[slot]).store(make_word(first + slot, slot_phase::free), release);
  }
  // A controller begins with the phase of an even lap: what an odd lap has left would pass for new completions.
  for (u32 at = index_in(g); at < cq_entries; at += size(g)) system_ref<u32>(cq[at].outcome).store(0, relaxed);
  if (is_leader(g)) {
    // A device begins with 0 by itself, and takes nothing before it has the queue.
    if (doorbells != doorbell_kind::device_register) {
      system_ref<u32>(*sq_doorbell).store(0, relaxed);
      system_ref<u32>(*cq_doorbell).store(0, relaxed);
    }
    device_ref<u64>(state->skipped).fetch_add(first - given, relaxed);
    device_ref<u64>(state->given).store(first, relaxed);
    device_ref<u64>(state->rung).store(first, relaxed);
    device_ref<u64>(state->fetched).store(first, relaxed);
    device_ref<u64>(state->cq_head).store(0, relaxed);
    device_ref<u64>(state->next_expiry_ns).store(0, relaxed);
    device_ref<u32>(state->stuck_positions).store(0, relaxed);
  }
  g.sync();
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::reopen(G const& g) const {
  g.sync();
  if (is_leader(g)) {
    device_ref<u32>(state->stopped).store(0, relaxed);
    system_ref<u32>(state->harvest_lock).store(0, release);
    system_ref<u32>(state->ring_lock).store(0, release);
    // Last; partner: why_stopped.
    device_ref<u64>(state->ticket).store(device_ref<u64>(state->given).load(relaxed), release);
  }
  g.sync();
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::unlock(G const& g, bool fails) const {
  g.sync();
  if (is_leader(g)) {
    if (fails) give_up();
    system_ref<u32>(state->harvest_lock).store(0, release);
    system_ref<u32>(state->ring_lock).store(0, release);
  }
  g.sync();
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::is_broken(G const& g) const {
  bool broken =
      device_ref<u32>(state->stopped).load(relaxed) != 0 || device_ref<u32>(state->stuck_positions).load(relaxed) != 0;
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
    broken |= device_ref<u32>(quarantines[slot].held).load(relaxed) != 0;
  }
  return any(g.ballot(broken));
}

}  // namespace penstock
