// Submission: the half of the queue pair that puts commands in. Included by queue_pair.hpp; line numbers are PROTOCOLS.md's.
#pragma once

#include "penstock/core/frame_copies.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_COLD status queue_pair_view<Sink>::submit(G g, bool want, transfer const& t, target const& to) const {
  const auto wanting = g.ballot(want);
  const u32 commands = count(wanting);
  if (commands == 0) return {};
  const auto rung = [this] { return device_ref<u64>(state->rung).load(relaxed); };
  if (commands == 1) {
    sent_command mine;
    const bool sent = want && try_send(t, to, mine);
    if (any(g.ballot(sent))) {
      g.sync();  // what the one lane has done happens before what its group does next, as behind any submission
      return {};
    }
  }
  // All on their way together. A lane with a ticket of a queue that is given up, or closed, withdraws.
  u64 rung_at_first = 0, base = 0;
  if (is_leader(g)) {
    const u32 stopped = device_ref<u32>(state->stopped).load(relaxed);
    rung_at_first = rung();
    base = device_ref<u64>(state->ticket).fetch_add(commands, relaxed);
    if (stopped != 0) base |= ticket_in_doubt;
  }
  base = from_leader(g, base);
  if ((base & queue_state::closed) != 0) return want ? make_status(failure::resetting) : status{};
  if ((base & ticket_in_doubt) != 0) {
    base &= ~ticket_in_doubt;
    if (const status stopped = why_stopped_for_all(g); !stopped.ok()) {
      settle(g, commands, commands);
      return want ? stopped : status{};
    }
  }
  const u64 ticket = base + count_below(wanting, g.rank());
  const u32 slot = slot_of(ticket);

  // 3-7: lanes publish as their slots come free. Nothing is held here but tickets, and every command ahead ends by its
  // deadline; a ring that has not moved for several of them never will.
  bool todo = want;
  u32 withdrawn = 0;
  status outcome{};
  ring_patience patience(4 * timeout_ns, rung_at_first);
  for (;;) {
    if (todo && load_word(slot) == make_word(ticket, slot_phase::free)) {
      publish(ticket, slot, identifier_of(slot), t, to);
      todo = false;
    }
    const auto waiting = g.ballot(todo);
    if (!any(waiting)) break;
    if (const status stopped = why_stopped_for_all(g); !stopped.ok()) {
      if (todo) outcome = stopped;
      withdrawn = count(waiting);
      break;
    }
    progress(g);
    drain(g, static_cast<u32>(g.shfl(slot, lowest(waiting))));
    if (!patience.pause(rung())) give_up();
  }

  // 8: leave nothing unrung, for a group that stops to look could leave a command that no thread rings. Most likely nothing
  // stands between: the lock is tried without a look, and what it rings is all.
  const ticket_range own{base + commands, withdrawn == 0 ? commands : 0};
  u64 now_at = try_ring(g, {.ring = true}, own);
  while (now_at < own.end && from_leader(g, rung() < own.end && why_stopped().ok()) != 0) {
    progress(g);
    if (!patience.pause(rung())) give_up();
    now_at = try_ring(g, {.ring = true}, own);
  }
  if (now_at < own.end || own.commands == 0) settle(g, commands, withdrawn);
  return outcome;
}

// 1-17 at once. Under the ring lock no other thread rings, and while no thread takes the ticket its slot stays free; so the
// thread that has it then can publish it and ring it without a look at what it has published. Before it has the ticket it has
// done nothing but take the lock: the ticket is had by a compare-and-swap, which a queue that is closed meanwhile, or given a
// ticket, makes fail.
template <completion_sink Sink>
PENSTOCK_FN bool queue_pair_view<Sink>::try_send(transfer const& t, target const& to, sent_command& mine) const {
  // Not where a ring is a trip over the link away, nor where bytes would be copied under the lock.
  if (rings_on_host || bounces != nullptr) return false;
  device_ref<u64> next(state->ticket);
  // All on their way together; and so the next.
  const u64 ticket = device_ref<u64>(state->rung).load(relaxed);
  const u64 given = next.load(relaxed);  // or closed
  const u32 ringing = device_ref<u32>(state->ring_lock).load(relaxed);
  const u32 stopped = device_ref<u32>(state->stopped).load(relaxed);
  if (given != ticket || ringing != 0 || stopped != 0) return false;
  const u32 slot = slot_of(ticket);
  // A slot that is free for a ticket is so until a thread has the ticket, and what is done stays so: both may be seen before
  // the lock is had.
  const u64 guard = ticket - in_flight_limit;
  const u64 own_word = device_ref<u64>(words[slot]).load(seen_before_fence);
  const u64 guards_word = device_ref<u64>(words[slot_of(guard)]).load(relaxed);
  const bool got = device_ref<u32>(state->ring_lock).exchange(1, seen_before_fence) == 0;
  if (!got) return false;
  order_after_seeing();
  const bool free = own_word == make_word(ticket, slot_phase::free);
  const bool room = ticket < in_flight_limit || guards_word >= make_word(guard + depth, slot_phase::free);
  bool has_it = free && room;
  if (has_it) {
    u64 expected = ticket;
    mine = {to, make_word(ticket, slot_phase::published), slot, identifier_of(slot)};
    has_it = next.compare_exchange_strong(expected, ticket + 1, relaxed, relaxed);
  }
  if (!has_it) {
    unlock_doorbell(state->ring_lock, doorbells);
    return false;
  }
  publish(ticket, slot, mine.identifier, t, to);
  device_ref<u64>(state->rung).store(ticket + 1, relaxed);
  ring_doorbell<order::doorbell>(*sq_doorbell, slot_of(ticket + 1), doorbells);
  add_relaxed(state->doorbells, 1);
  unlock_doorbell(state->ring_lock, doorbells, [&] { add_after_fence(state->settled, 1); });
  return true;
}

/// The group is done with its tickets: whatever it does to the queue from here on, a reset need not wait for.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::settle(G const& g, u32 commands, u32 withdrawn) const {
  g.sync();  // what any lane has published is reported with it
  if (!is_leader(g)) return;
  if (withdrawn != 0) device_ref<u64>(state->withdrawn).fetch_add(withdrawn, relaxed);
  add_release(state->settled, commands);  // partner: try_quiesce
}

template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::publish(u64 ticket, u32 slot, u32 identifier, transfer const& t,
                                                target const& to) const {
  const bool exposed = bounces == nullptr || t.straight;
  const u64 bounce = !exposed && t.bytes != 0 ? bounces[slot] : 0;
  if (bounce != 0 && t.writes) copy_frame_to_bounce(bounce, t.address, t.bytes);
  context& what = contexts[slot];
  what.to = to;
  what.address = t.address;
  what.bytes = t.bytes;
  what.drains = bounce != 0 && !t.writes;
  what.exposed = exposed;
  device_ref<u64>(what.deadline_ns).store(now_ns() + timeout_ns, relaxed);  // a ringer may look early

  nvme::submission_entry command = t.command;
  command.command_id = static_cast<u16>(identifier);
  if (t.bytes != 0) {
    const u64 list = bounce != 0 ? bounce_lists + (bounce - bounce_base) / bounce_bytes * prp_list_stride : t.prp_list;
    nvme::set_data_pointer(command, bounce != 0 ? bounce : t.address, t.bytes, list);
  }
  Sink::placed(to, index, static_cast<u16>(slot));
  sq[slot] = command;
  // 6; partners: the acquires of 12, 24 and 27.
  device_ref<u64>(words[slot]).store(make_word(ticket, slot_phase::published), order::published);
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN u64 queue_pair_view<Sink>::try_ring(G const& g, glance const& seen, ticket_range const& own) const {
  // 9-10: a thread has published what is to be rung next, and the lock is free.
  u64 position = 0;
  bool got = false;
  if (is_leader(g)) {
    got = seen.ring && device_ref<u32>(state->ring_lock).exchange(1, acquire) == 0;
    if (got) position = device_ref<u64>(state->rung).load(relaxed);
  }
  if (from_leader(g, got) == 0) return 0;
  const u64 start = position = from_leader(g, position);

  // 11-13: advance over what is published, never past the full-ring guard (Q2), which reads nothing but words: the acquire is
  // for what a command's own word publishes.
  const u32 width = size(g);
  const u32 at = index_in(g);
  bool late = false;
  for (u32 round = 0; round <= depth / width + 1; ++round) {
    const u64 mine = position + at;
    const u32 slot = slot_of(mine);
    device_ref<u64> deadline(contexts[slot].deadline_ns);
    const u64 due = deadline.load(relaxed);
    const bool free = mine < in_flight_limit || done(mine - in_flight_limit);
    const bool ready = load_word(slot) == make_word(mine, slot_phase::published) && free;
    const u32 advanced = leading(g.members(), g.ballot(ready));
    // Its time runs from here: what it waited for behind the guard is no fault of its own. A little of it may be.
    const u64 anew = now_ns() + timeout_ns;
    if (at < advanced && anew - due > timeout_ns / deadline_slack) {
      deadline.store(anew, relaxed);
      late = true;
    }
    position += advanced;
    if (advanced < width) break;
  }

  // 14-17: all lanes have acquired what they saw before the leader releases it.
  const bool any_late = any(g.ballot(late));
  const u64 rung_now = position != start ? position : 0;
  g.sync();
  if (is_leader(g)) {
    if (position != start) {
      // Before the doorbell: 26 compares with it. Release where a deadline moved: a thread that expires a ticket that is rung
      // sees when that was.
      if (any_late) device_ref<u64>(state->rung).store(position, order::rung);
      if (!any_late) device_ref<u64>(state->rung).store(position, relaxed);
      ring_doorbell<order::doorbell>(*sq_doorbell, slot_of(position), doorbells);
      add_relaxed(state->doorbells, 1);
    }
    const bool settles = rung_now >= own.end && own.commands != 0;
    unlock_doorbell(state->ring_lock, doorbells, [&] {
      if (settles) add_after_fence(state->settled, own.commands);
    });
  }
  return rung_now;
}

template <completion_sink Sink>
PENSTOCK_FN typename queue_pair_view<Sink>::glance queue_pair_view<Sink>::look() const {
  const u64 position = device_ref<u64>(state->rung).load(relaxed);
  const u64 head = device_ref<u64>(state->cq_head).load(relaxed);
  const u64 next_expiry = device_ref<u64>(state->next_expiry_ns).load(relaxed);
  const bool broken = failed();
  const bool rings = device_ref<u32>(state->ring_lock).load(relaxed) != 0;
  const bool harvests = device_ref<u32>(state->harvest_lock).load(relaxed) != 0;
  const u64 word = device_ref<u64>(words[slot_of(position)]).load(relaxed);
  // A ring on the host is a trip over the link away: only the lock holder looks at it.
  const u32 outcome = rings_on_host ? 0 : system_ref<u32>(cq[cq_slot_of(head)].outcome).load(relaxed);
  glance seen;
  seen.ring = !rings && word == make_word(position, slot_phase::published);
  seen.harvest =
      !harvests && (rings_on_host || broken || nvme::phase_tag(outcome) == phase_at(head) || now_ns() >= next_expiry);
  seen.next_expiry_ns = next_expiry;
  return seen;
}

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_COLD bool queue_pair_view<Sink>::progress(G g) const {
  glance seen;
  if (is_leader(g)) seen = look();
  bool moved = try_ring(g, seen) != 0;
  if (is_leader(g) && poll != nullptr) {
    call_on_host(poll, poll_target, id);
    seen = look();
  }
  moved |= try_harvest(g, seen);
  if (bounces != nullptr) drain_one(g);
  return moved;
}

}  // namespace penstock
