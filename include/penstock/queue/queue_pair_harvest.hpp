// Completion: the half of the queue pair that takes results out, and what happens when none comes. Included by queue_pair.hpp;
// line numbers are PROTOCOLS.md's.
#pragma once

#include "penstock/core/frame_copies.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::try_harvest(G const& g, glance const& seen) const {
  // 18-19. An expiry that is due is reason enough to go on: a dead controller posts nothing.
  u64 head = 0;
  harvest_reason why{};
  if (is_leader(g) && seen.harvest && device_ref<u32>(state->harvest_lock).exchange(1, order::harvesting) == 0) {
    // What is seen now changes under this lock alone, but for a controller that is given up: that is seen by the next holder.
    head = device_ref<u64>(state->cq_head).load(relaxed);
    const bool stuck = device_ref<u32>(state->stuck_positions).load(relaxed) != 0;
    why = failed() ? harvest_reason::failed : stuck ? harvest_reason::some_are_stuck : harvest_reason::usual;
  }
  why = static_cast<harvest_reason>(from_leader(g, static_cast<u64>(why)));
  if (why == harvest_reason::none) return false;
  g.sync();  // what the last holder wrote is ours to read, for every lane
  const u64 start = from_leader(g, head);

  u64 now_at = start;
  if (why == harvest_reason::failed) {
    fail_all(g, failure_for_all(g));
  } else {
    now_at = harvest_batches(g, start);
    if (why == harvest_reason::some_are_stuck) free_passed(g);
    // What was seen before the lock may be late by one holder: that costs one look at the deadlines, or delays one.
    const bool due = is_leader(g) && now_ns() >= seen.next_expiry_ns;
    if (from_leader(g, due) != 0) now_at = expire(g, now_at);
  }

  // 33.
  g.sync();
  if (is_leader(g)) unlock_doorbell(state->harvest_lock, doorbells);
  return now_at != start;
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN u64 queue_pair_view<Sink>::harvest_batches(G const& g, u64 head) const {
  const u32 width = size(g);
  const u32 at = index_in(g);
  for (u32 round = 0; round <= cq_entries / width + 1; ++round) {
    // 20-22. A lane beyond the ring would look at an entry that another lane has, one lap on.
    const u64 mine = head + at;
    nvme::completion_entry& entry = cq[cq_slot_of(mine)];
    const u32 outcome = system_ref<u32>(entry.outcome).load(order::completion);
    const bool fresh = at < cq_entries && nvme::phase_tag(outcome) == phase_at(mine);
    const u32 batch = leading(g.members(), g.ballot(fresh));
    if (batch == 0) break;
    // 23-30
    if (at < batch) {
      const u32 sq_head = system_ref<u32>(entry.queue).load(relaxed) & 0xffffu;
      const u64 rung = device_ref<u64>(state->rung).load(relaxed);
      complete(outcome, rung);
      if (at + 1 == batch) count_fetched(sq_head, rung);
    }
    // 31-32
    g.sync();
    head += batch;
    if (is_leader(g)) {
      device_ref<u64>(state->cq_head).store(head, relaxed);
      ring_doorbell(*cq_doorbell, cq_slot_of(head), doorbells);
      add_relaxed(state->completions, batch);
    }
    if (batch < width) break;
  }
  return head;
}

// 18-33 for one completion. Its entry is looked at before the lock is had; the order behind the exchange is that of both.
template <completion_sink Sink>
PENSTOCK_FN typename queue_pair_view<Sink>::taken queue_pair_view<Sink>::take_next(sent_command const& mine, u64& head) const {
  // All on their way together.
  const u64 now_at = device_ref<u64>(state->cq_head).load(relaxed);
  const u64 next_expiry = device_ref<u64>(state->next_expiry_ns).load(relaxed);
  const u32 stopped = device_ref<u32>(state->stopped).load(relaxed);
  nvme::completion_entry& entry = cq[cq_slot_of(head)];
  const u32 outcome = system_ref<u32>(entry.outcome).load(seen_before_fence);
  const u32 behind = system_ref<u32>(cq[cq_slot_of(head + 1)].outcome).load(relaxed);
  if (stopped != 0 || now_ns() >= next_expiry) return taken::crowd;
  if (now_at != head) {
    head = now_at;
    return taken::none;
  }
  if (nvme::phase_tag(outcome) != phase_at(head)) return taken::none;
  if (nvme::phase_tag(behind) == phase_at(head + 1)) return taken::crowd;
  if (device_ref<u32>(state->harvest_lock).exchange(1, seen_before_fence) != 0) return taken::none;
  order_after_seeing();
  // Again. The entry is the one that was seen if the head is: it moves under this lock alone.
  const bool same = device_ref<u64>(state->cq_head).load(relaxed) == head;
  const bool stuck = device_ref<u32>(state->stuck_positions).load(relaxed) != 0;
  const u64 word = device_ref<u64>(words[mine.slot]).load(relaxed);
  const bool own = nvme::command_id(outcome) == mine.identifier && word == mine.word && nvme::completion_status(outcome).ok();
  if (same && !stuck) {
    if (own) {
      // Its context is in this thread's registers, and under this lock no other thread changes its word. How far the controller
      // has fetched is asked where something is stuck, and the next completion reports it.
      order_before_telling();
      Sink::finish(mine.to, {});
      store_after_fence(words[mine.slot], next_free(word));
    } else {
      const u32 sq_head = system_ref<u32>(entry.queue).load(relaxed) & 0xffffu;
      const u64 rung = device_ref<u64>(state->rung).load(relaxed);
      complete(outcome, rung);
      count_fetched(sq_head, rung);
    }
    ++head;
    device_ref<u64>(state->cq_head).store(head, relaxed);
    ring_doorbell_after_fence(*cq_doorbell, cq_slot_of(head), doorbells);
    add_relaxed(state->completions, 1);
  }
  unlock_doorbell(state->harvest_lock, doorbells);
  return !same ? taken::none : stuck ? taken::crowd : own ? taken::own : taken::other;
}

// 24-30. In the sound order it ends behind an order_before_telling().
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::complete(u32 outcome, u64 rung) const {
  const u32 identifier = nvme::command_id(outcome);
  const u32 slot = slot_of(identifier);
  const status outcome_status = nvme::completion_status(outcome);
  if (!outcome_status.ok()) add_relaxed(state->errors, 1);
  // All on their way together. What was rung was so before this completion; the word's acquire is that of the exchange.
  const u32 current = identifier_of(slot);
  u64& slot_word = words[slot];
  u64 word = device_ref<u64>(slot_word).load(relaxed);
  const bool in_flight = phase_of(word) == slot_phase::published && identifier == current && word / 4 < rung;
  // 27: of two completions with one identifier in a batch one wins; the other is a stray.
  if (!in_flight || !device_ref<u64>(slot_word).compare_exchange_strong(word, word + 2, order::taken, relaxed)) {
    stray(slot, identifier);
    order_before_telling();
    return;
  }
  const u64 published = word;
  context const& c = contexts[slot];
  if (c.drains && outcome_status.ok()) {
    order_before_telling();
    store_after_fence(slot_word, published + 1);  // landed; partner: the acquires in drain
    return;
  }
  const target to = c.to;
  if constexpr (order::finished == release) order_before_telling();
  Sink::finish(to, outcome_status);
  // Partner: 4. May be seen before the end of the command is: the thread that takes the slot asks nothing of its last command.
  store_after_fence(slot_word, next_free(published));
}

// 30. Either the late completion of a command that was given up, or a controller that broke the protocol.
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::stray(u32 slot, u32 identifier) const {
  quarantine& q = quarantines[slot];
  device_ref<u64>(state->strays).fetch_add(1, relaxed);
  // An exchange, because a late completion too may come twice in one batch: one lane releases the quarantine.
  if (identifier != slot + depth * (generations[slot] ^ 1u) || device_ref<u32>(q.held).exchange(0, relaxed) == 0) {
    give_up();
    return;
  }
  Sink::resolve(q.to, q.bounce == 0);
  if (q.bounce != 0) spares[device_ref<u32>(state->spare_buffers).fetch_add(1, relaxed)] = q.bounce;
}

/// Turns the submission queue head of the newest completion into a count of tickets. All that is rung and not fetched fits the
/// ring, so the count is unique.
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::count_fetched(u32 sq_head, u64 rung) const {
  device_ref<u64>(state->fetched).store(rung - (slot_of(rung) + depth - sq_head % depth) % depth, relaxed);
}

template <completion_sink Sink>
PENSTOCK_FN bool queue_pair_view<Sink>::overdue(u32 slot, u64 now) const {
  return phase_of(load_word(slot)) == slot_phase::published && device_ref<u64>(contexts[slot].deadline_ns).load(relaxed) <= now;
}

/// The command that holds the ring at its guard was given up and not fetched, as far as is known, and nothing is in flight that
/// could show otherwise.
template <completion_sink Sink>
PENSTOCK_FN bool queue_pair_view<Sink>::stands_still() const {
  const u64 rung = device_ref<u64>(state->rung).load(relaxed);
  const u64 first = rung - in_flight_limit;
  quarantine const& q = quarantines[slot_of(first)];
  if (rung < in_flight_limit || q.stuck == 0 || q.ticket != first) return false;
  for (u64 t = first; t < rung; ++t) {
    if (load_word(slot_of(t)) == make_word(t, slot_phase::published)) return false;
  }
  return true;
}

/// Looks at the deadlines of all that is published. Under the harvest lock, so that a completion and its time-out can't both
/// win. A look costs a way through all slots, so it says when the next is due: no earlier than the first deadline that it saw,
/// and what is published later has a whole timeout before it.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN u64 queue_pair_view<Sink>::expire(G const& g, u64 head) const {
  const u64 now = from_leader(g, now_ns());
  bool found = false;
  u64 earliest = now + timeout_ns;
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
    if (phase_of(load_word(slot)) != slot_phase::published) continue;
    const u64 deadline = device_ref<u64>(contexts[slot].deadline_ns).load(relaxed);
    found |= deadline <= now;
    if (deadline < earliest) earliest = deadline;
  }
  const bool any_overdue = any(g.ballot(found));
  if (any_overdue) {
    // Look once more: this group may have slept over a completion (W7).
    if (is_leader(g)) call_on_host(poll, poll_target, id);
    head = harvest_batches(g, head);
    // A command that was not rung waits behind the guard: only a ring that stands still for good ends its wait.
    const u64 rung = from_leader(g, device_ref<u64>(state->rung).load(acquire));
    g.sync();  // its ringers' deadlines are every member's to read
    bool waits = false;
    for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
      if (!overdue(slot, now)) continue;
      if (load_word(slot) / 4 < rung) {
        abandon(slot);
      } else {
        waits = true;
      }
    }
    g.sync();
    free_passed(g);
    const bool stuck = any(g.ballot(waits));
    g.sync();
    if (stuck && is_leader(g) && stands_still()) give_up();
  }
  const u64 soonest = now_ns() + expiry_period_ns;
  if (is_leader(g)) device_ref<u64>(state->next_expiry_ns).store(any_overdue ? soonest : now + timeout_ns, relaxed);
  g.sync();
  if (!any_overdue) lower_to(state->next_expiry_ns, earliest < soonest ? soonest : earliest);
  return head;
}

/// Gives a command up: its waiters see the time-out, its identifier changes, and what the controller may still write is kept
/// away from all threads until the late completion. The position stays taken until the controller has fetched it.
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::abandon(u32 slot) const {
  u64 word = load_word(slot);
  quarantine& q = quarantines[slot];
  // A second stray of one slot could not be distinguished from the first, and an abort of the first would end what has its
  // identifier.
  if (device_ref<u32>(q.held).load(relaxed) != 0 || q.asked != 0) {
    give_up();
    return;
  }
  const bool exposed = contexts[slot].exposed;
  u64 spare = 0;
  if (!exposed) {
    spare = take_spare();
    if (spare == 0) {
      give_up();
      return;
    }
  }
  if (!device_ref<u64>(words[slot]).compare_exchange_strong(word, word + 2, acquire, relaxed)) return;
  q.to = contexts[slot].to;
  q.ticket = word / 4;
  q.stuck = 1;
  q.bounce = exposed ? 0 : bounces[slot];
  device_ref<u32>(q.held).store(1, relaxed);
  if (!exposed) bounces[slot] = spare;
  generations[slot] ^= 1u;
  device_ref<u32>(state->stuck_positions).fetch_add(1, relaxed);
  device_ref<u64>(state->expired).fetch_add(1, relaxed);
  order_before_telling();
  Sink::abandon(q.to, make_status(failure::deadline), exposed);
}

template <completion_sink Sink>
PENSTOCK_FN u64 queue_pair_view<Sink>::take_spare() const {
  device_ref<u32> left(state->spare_buffers);
  u32 n = left.load(relaxed);
  while (n != 0 && !left.compare_exchange_weak(n, n - 1, relaxed, relaxed)) {}
  return n == 0 ? 0 : spares[n - 1];
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::free_passed(G const& g) const {
  const u64 fetched = device_ref<u64>(state->fetched).load(relaxed);
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
    quarantine& q = quarantines[slot];
    if (q.stuck == 0 || q.ticket >= fetched) continue;
    q.stuck = 0;
    device_ref<u32>(state->stuck_positions).fetch_sub(1, relaxed);
    device_ref<u64>(words[slot]).store(make_word(q.ticket + depth, slot_phase::free), release);
  }
}

/// The controller broke the protocol or does not move: nothing more is given to it, and every user of the queue sees it.
template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::give_up() const {
  device_ref<u32>(state->failure).store(pack(make_status(failure::controller_failed)), relaxed);
  device_ref<u32>(state->stopped).fetch_or(queue_state::given_up, release);  // partners: failure_status, why_stopped
}

/// Ends every published command of a failed controller. Their buffers stay in quarantine until a reset: it may still write
/// them.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::fail_all(G const& g, status why) const {
  for (u32 slot = index_in(g); slot < depth; slot += size(g)) {
    u64 word = load_word(slot);
    if (phase_of(word) != slot_phase::published) continue;
    if (!device_ref<u64>(words[slot]).compare_exchange_strong(word, word + 2, acquire, relaxed)) continue;
    quarantines[slot].failed = 1;
    device_ref<u64>(state->failed).fetch_add(1, relaxed);
    order_before_telling();
    Sink::abandon(contexts[slot].to, why, contexts[slot].exposed);
  }
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN bool queue_pair_view<Sink>::drain(G const& g, u32 slot) const {
  u64 word = 0;
  bool got = false;
  if (is_leader(g)) {
    word = load_word(slot);
    got = phase_of(word) == slot_phase::landed &&
          device_ref<u64>(words[slot]).compare_exchange_strong(word, word + 1, acquire, relaxed);
  }
  if (from_leader(g, got) == 0) return false;
  g.sync();  // the leader's acquire is every member's
  order_claim_before_bytes();
  context const& c = contexts[slot];
  copy_bounce_to_frame(c.address, bounces[slot], c.bytes, index_in(g), size(g));
  g.sync();
  if (is_leader(g)) {
    const target to = c.to;
    order_before_telling();
    Sink::finish(to, {});
    store_after_fence(words[slot], next_free(word));
  }
  return true;
}

/// A passing group drains a landed line that has no waiter: first the one that blocks the ring, else one at random.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::drain_one(G const& g) const {
  u64 slot = 0;
  if (is_leader(g)) {
    const u64 rung = device_ref<u64>(state->rung).load(relaxed);
    slot = rung >= in_flight_limit ? slot_of(rung - in_flight_limit) : 0;
    if (!is_landed(words[slot])) slot = static_cast<u32>(now_ns() / 32) % depth;
  }
  drain(g, static_cast<u32>(from_leader(g, slot)));
}

}  // namespace penstock
