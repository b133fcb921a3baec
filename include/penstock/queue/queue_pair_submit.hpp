// Submission: the half of the queue pair that puts commands in. Included by queue_pair.hpp; line numbers are PROTOCOLS.md's.
#pragma once

#include "penstock/queue/queue_pair.hpp"

namespace penstock {

template <completion_sink Sink>
template <thread_group G>
PENSTOCK_COLD status queue_pair_view<Sink>::submit(G g, bool want, transfer const& t, target const& to) const {
  const auto wanting = g.ballot(want);
  const u32 commands = count(wanting);
  if (commands == 0) return {};
  const auto rung = [this] { return device_ref<u64>(state->rung).load(relaxed); };
  u64 rung_at_first = 0, base = 0;
  if (is_leader(g)) rung_at_first = rung();
  if (const status broken = failure_for_all(g); !broken.ok()) return want ? broken : status{};
  if (is_leader(g)) base = device_ref<u64>(state->ticket).fetch_add(commands, relaxed);
  base = from_leader(g, base);
  if ((base & queue_state::closed) != 0) return want ? make_status(failure::resetting) : status{};
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
      publish(ticket, slot, t, to);
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

  // 8: leave nothing unrung, for a group that stops to look could leave a command that nobody rings.
  while (from_leader(g, rung() < base + commands && why_stopped().ok()) != 0) {
    // Most likely nothing stands between: the lock is tried without a look.
    if (!try_ring(g, {.ring = true})) {
      progress(g);
      if (!patience.pause(rung())) give_up();
    }
  }
  settle(g, commands, withdrawn);
  return outcome;
}

/// The group is done with its tickets: whatever it does to the queue from here on, a reset need not wait for.
template <completion_sink Sink>
template <thread_group G>
PENSTOCK_FN void queue_pair_view<Sink>::settle(G const& g, u32 commands, u32 withdrawn) const {
  g.sync();  // what any lane has published is told with it
  if (!is_leader(g)) return;
  if (withdrawn != 0) device_ref<u64>(state->withdrawn).fetch_add(withdrawn, relaxed);
  device_ref<u64>(state->settled).fetch_add(commands, release);  // partner: try_quiesce
}

template <completion_sink Sink>
PENSTOCK_FN void queue_pair_view<Sink>::publish(u64 ticket, u32 slot, transfer const& t, target const& to) const {
  const bool exposed = bounces == nullptr || t.straight;
  const u64 bounce = !exposed && t.bytes != 0 ? bounces[slot] : 0;
  if (bounce != 0 && t.writes) copy_frame_to_bounce(bounce, t.address, t.bytes);
  contexts[slot] = {to, t.address, now_ns() + timeout_ns, t.bytes, bounce != 0 && !t.writes, exposed};

  nvme::submission_entry command = t.command;
  command.command_id = static_cast<u16>(slot + depth * generations[slot]);
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
PENSTOCK_FN bool queue_pair_view<Sink>::try_ring(G const& g, glance const& seen) const {
  // 9-10: someone has published what is to be rung next, and the lock is free.
  u64 position = 0;
  bool got = false;
  if (is_leader(g)) {
    got = seen.ring && device_ref<u32>(state->ring_lock).exchange(1, acquire) == 0;
    if (got) position = device_ref<u64>(state->rung).load(relaxed);
  }
  if (from_leader(g, got) == 0) return false;
  const u64 start = position = from_leader(g, position);

  // 11-13: advance over what is published, never past the full-ring guard (Q2).
  const u32 width = size(g);
  const u32 at = index_in(g);
  for (u32 round = 0; round <= depth / width + 1; ++round) {
    const u64 mine = position + at;
    const bool free = mine < in_flight_limit || done(mine - in_flight_limit);
    const bool ready = load_word(slot_of(mine)) == make_word(mine, slot_phase::published) && free;
    const u32 advanced = leading(g.members(), g.ballot(ready));
    // Its time runs from here: what it waited for behind the guard is no fault of its own.
    if (at < advanced) device_ref<u64>(contexts[slot_of(mine)].deadline_ns).store(now_ns() + timeout_ns, relaxed);
    position += advanced;
    if (advanced < width) break;
  }

  // 14-17: all lanes have acquired what they saw before the leader releases it.
  g.sync();
  if (is_leader(g)) {
    if (position != start) {
      // Before the doorbell: 26 compares with it. Release: who expires a ticket that is rung sees when that was.
      device_ref<u64>(state->rung).store(position, order::rung);
      ring_doorbell<order::doorbell>(*sq_doorbell, slot_of(position), registers);
      device_ref<u64>(state->doorbells).fetch_add(1, relaxed);
    }
    // At system scope, so that the doorbells of two holders stay in order (Q8).
    system_ref<u32>(state->ring_lock).store(0, release);
  }
  return position != start;
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
  bool moved = try_ring(g, seen);
  if (is_leader(g) && poll != nullptr) {
    call_on_host(poll, poll_target, id);
    seen = look();
  }
  moved |= try_harvest(g, seen);
  if (bounces != nullptr) drain_one(g);
  return moved;
}

}  // namespace penstock
