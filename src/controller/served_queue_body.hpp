// The serving body of the modelled drives: one source, walked by warps of a resident kernel (model_kernel.cu) and by threads of
// the host (model_server.cpp).
//
// A plain drive's commands are served as they are taken. With a timing or a fault plan they are taken into the queue's list of
// waiting commands with the time at which each is due, and served when it has come; less the drive's lead, so that they are
// done when they are due, on the average over the commands of the drive (served_timing.hpp).
#pragma once

#include "served_ring.hpp"
#include "served_timing.hpp"
#include "served_transfer.hpp"

#include "penstock/core/clock.hpp"

namespace penstock::controllers {

PENSTOCK_FN inline void add_count(u64& counter, u64 n) {
  if (n != 0) device_ref<u64>(counter).fetch_add(n, relaxed);
}

/// Counts what a batch moved. Collective.
template <thread_group G>
PENSTOCK_FN void count_batch(G const& g, served_counts& counts, served_transfer const& mine) {
  const u32 reads = count(g.ballot(mine.bytes != 0 && !mine.write));
  const u32 writes = count(g.ballot(mine.bytes != 0 && mine.write));
  u64 total = 0;
  exclusive_sum(g, mine.write ? mine.bytes << 32 : mine.bytes, total);  // a batch moves less than 4 GiB each way
  if (!is_leader(g)) return;
  add_count(counts.reads, reads);
  add_count(counts.writes, writes);
  add_count(counts.bytes_read, total & 0xffffffffu);
  add_count(counts.bytes_written, total >> 32);
}

/// The batch is on the completion ring; whoever waits for the queue to be quiet may go on. Collective.
template <thread_group G>
PENSTOCK_FN void leave_queue(G const& g, server_view const& view, queue_record& q) {
  if (!view.queues_come_and_go) return;
  g.sync();
  if (is_leader(g)) device_ref<u32>(q.inside).fetch_sub(1, release);
}

/// Collective, under the lock: the caller will post a batch after it has given the lock back.
template <thread_group G>
PENSTOCK_FN void enter_queue(G const& g, server_view const& view, queue_record& q) {
  if (view.queues_come_and_go && is_leader(g)) device_ref<u32>(q.inside).fetch_add(1, relaxed);
}

/// Takes a batch, serves it and posts it. Collective, under the lock, which is given back. True if there was anything.
template <thread_group G>
PENSTOCK_FN bool serve_plain(G const& g, server_view const& view, queue_facts const& facts, queue_record& q) {
  drive_record const& drive = *facts.drive;
  nvme::submission_entry command;
  const taken_batch batch = take_commands(g, facts, q, size(g), command);
  if (batch.count != 0) enter_queue(g, view, q);
  unlock(g, q);
  if (batch.count == 0) return false;
  const bool mine = g.rank() < batch.count;
  const served_transfer transfer = mine ? decode(drive, command) : served_transfer{};
  order_claim_before_bytes();  // PROTOCOLS.md §2, "order before the first byte of a fill"
  move_batch(g, transfer);
  post_completions(g, facts, q, mine, g.rank(), command.command_id, transfer.status);
  count_batch(g, q.counts, transfer);
  if (is_leader(g)) {
    add_count(q.counts.fetched, batch.count);
    add_count(q.counts.completed, batch.count);
  }
  leave_queue(g, view, q);
  return true;
}

/// The list of waiting commands as the holder of the lock sees it: counts, taken modulo the list's capacity.
struct waiting_span {
  u64 first = 0;
  u64 next = 0;  ///< one more than the newest

  PENSTOCK_FN u64 length() const { return next - first; }
};

PENSTOCK_FN inline waiting_command& waiting_at(queue_facts const& facts, u64 number) {
  return facts.waiting[number & (facts.waiting_capacity - 1)];
}

/// What the plan does to a command that is kept in `slot`; the drive counts it. Collective.
template <thread_group G>
PENSTOCK_COLD void plan_faults(G g, queue_facts const& facts, bool mine, u64 number, waiting_command& slot) {
  drive_record& drive = *facts.drive;
  fault_draw faults;
  if (mine) faults = draw_faults(drive.faults, facts.rings.id, number);
  if (mine) {
    slot.due += (faults.delay ? drive.delay : 0) + (faults.late ? drive.late : 0);
    slot.random = faults.random;
    slot.error_code = faults.error_code;
    slot.used = true;
    slot.drop = faults.drop;
    slot.duplicate = faults.duplicate;
    slot.unknown_identifier = faults.unknown_identifier;
  }
  const u32 errors = count(g.ballot(faults.error_code != 0));
  const u32 delays = count(g.ballot(faults.delay));
  const u32 lates = count(g.ballot(faults.late));
  if (!is_leader(g)) return;
  add_count(drive.counts.errors, errors);
  add_count(drive.counts.delays, delays);
  add_count(drive.counts.lates, lates);
}

/// Keeps member k's command until it is due. The leader learns how many were in flight before. Collective, under the lock.
template <bool faulty, thread_group G>
PENSTOCK_FN u64 keep_waiting(G const& g, server_view const& view, queue_facts const& facts, drive_pace const& pace,
                             waiting_span& list, taken_batch const& batch, nvme::submission_entry const& command, u64 now) {
  drive_record& drive = *facts.drive;
  const bool mine = g.rank() < batch.count;
  const u64 bytes = mine ? asked_bytes(drive, pace, command) : 0;
  const bool write = command.opcode == static_cast<u8>(nvme::opcode::write);
  const u64 due = admit(g, view, drive, pace, mine, write, bytes, now);
  // Field by field: a GPU's compiler stores a whole record byte by byte.
  waiting_command& slot = waiting_at(facts, list.next + g.rank());
  if (mine) {
    slot.command = command;
    slot.due = due;
    slot.fetched = now;
  }
  if constexpr (faulty) plan_faults(g, facts, mine, batch.number + g.rank(), slot);
  list.next += batch.count;
  if (!is_leader(g)) return 0;
  // Before anyone can finish them, or the drive would seem to be idle.
  return device_ref<u64>(drive.in_flight).fetch_add(batch.count, relaxed);
}

/// The rest of what the drive counts of a batch that was taken: nobody waits for it. One member.
PENSTOCK_FN inline void count_taken(drive_record& drive, u32 taken, u64 in_flight_before, u64 now) {
  add_count(drive.counts.fetched, taken);
  // Ends and begins of busy periods are summed, so it does not matter in which order two servers add theirs.
  if (in_flight_before == 0) add_count(drive.counts.busy, 0 - now / ticks_per_ns);
  raise_to(drive.most_in_flight, in_flight_before + taken);
}

/// Takes from the front of the list what is due until `horizon`: without faults commands are due in the order in which they
/// were taken. True in the members that got one; `next_due` as in queue_fields. Collective, under the lock.
template <thread_group G>
PENSTOCK_FN bool take_first_due(G const& g, queue_facts const& facts, waiting_span& list, u64 horizon, waiting_command& taken,
                                u64& next_due) {
  const bool there = g.rank() < list.length();
  // All of it at once, due or not: one trip to memory.
  if (there) taken = waiting_at(facts, list.first + g.rank());
  const u32 due = leading(g.members(), g.ballot(there && taken.due <= horizon));
  list.first += due;
  // Where each member got one, the next one was not looked at: it may be due.
  next_due = due == size(g) ? 0 : g.shfl(taken.due, due);
  if (list.length() == 0) next_due = ~u64{0};
  return g.rank() < due;
}

/// Takes up to a group's width of commands that are due, from anywhere in the list. True in the members that got one.
/// Collective, under the lock.
template <thread_group G>
PENSTOCK_FN bool take_any_due(G const& g, queue_facts const& facts, waiting_span const& list, u64 now, u64 horizon,
                              waiting_command& taken) {
  drive_record& drive = *facts.drive;
  const u64 span = list.length();
  const u64 turn = drive.reorder && span != 0 ? random_draws(drive.faults.seed, facts.rings.id, now).below(span) : 0;
  bool mine = false;
  for (u64 offset = 0; offset < span; offset += size(g)) {
    const u64 k = offset + g.rank();
    if (k < span) {
      waiting_command& slot = waiting_at(facts, list.first + (k + turn) % span);
      mine = slot.used && slot.due <= horizon;
      if (mine) {
        taken = slot;
        slot.used = false;
      }
    }
    if (any(g.ballot(mine))) break;
  }
  return mine;
}

/// Forgets what was taken from the front of the list. Collective, under the lock.
template <thread_group G>
PENSTOCK_FN void close_gaps(G const& g, queue_facts const& facts, waiting_span& list) {
  g.sync();
  for (u32 gaps = size(g); gaps == size(g);) {
    const u64 number = list.first + g.rank();
    gaps = leading(g.members(), g.ballot(number < list.next && !waiting_at(facts, number).used));
    list.first += gaps;
  }
}

/// Posts what was served with everything that the plan wants. How many completions. Collective.
template <thread_group G>
PENSTOCK_COLD u32 post_with_faults(G g, queue_facts const& facts, queue_record& q, bool mine, waiting_command const& taken,
                                   u16 status) {
  drive_record& drive = *facts.drive;
  const bool answered = mine && !taken.drop;
  const bool unknown = answered && taken.unknown_identifier, twice = answered && taken.duplicate;
  const u16 id = taken.command.command_id;
  if (drive.completions_per_command > 1) {
    // Hosts number their commands from 0 (slot + depth x generation), so the upper half of the identifiers is free.
    const auto nobody = static_cast<u16>(0x8000u | (taken.random & 0x7fffu));
    post_completions(g, facts, q, unknown, place_in_order(g, unknown), nobody, nvme::code::success);
  }
  const u32 place = drive.reorder ? place_at_random(g, answered, taken.random) : place_in_order(g, answered);
  post_completions(g, facts, q, answered, place, id, status);
  if (drive.completions_per_command > 1) post_completions(g, facts, q, twice, place_in_order(g, twice), id, status);

  const u32 served = count(g.ballot(mine)), completed = count(g.ballot(answered));
  const u32 unknowns = count(g.ballot(unknown)), twices = count(g.ballot(twice));
  if (!is_leader(g)) return completed;
  add_count(drive.counts.drops, served - completed);
  add_count(drive.counts.unknown_identifiers, unknowns);
  add_count(drive.counts.duplicates, twices);
  const u64 unused = u64{served} * drive.completions_per_command - completed - unknowns - twices;
  if (unused != 0) device_ref<u64>(q.reserved).fetch_sub(unused, relaxed);
  return completed;
}

/// Serves what was taken and posts it; then counts, and learns when it should have begun. Collective, without the lock.
template <bool faulty, thread_group G, class Clock>
PENSTOCK_FN void finish_due(G const& g, queue_facts const& facts, queue_record& q, bool mine, waiting_command const& taken,
                            u64 service, u64 lead, Clock& clock) {
  drive_record& drive = *facts.drive;
  served_transfer transfer;
  if (mine) transfer = faulty && taken.error_code != 0 ? refused(taken.error_code) : decode(drive, taken.command);
  order_claim_before_bytes();
  move_batch(g, transfer);
  const auto all = g.ballot(mine);
  const u32 served = count(all);
  u32 completed = served;
  if constexpr (faulty) {
    completed = post_with_faults(g, facts, q, mine, taken, transfer.status);
  } else {
    post_completions(g, facts, q, mine, count_below(all, g.rank()), taken.command.command_id, transfer.status);
  }
  const u64 done = from_leader(g, clock.now());
  count_batch(g, drive.counts, transfer);
  u64 residence = 0, late = 0;
  exclusive_sum(g, mine ? done - taken.fetched / ticks_per_ns : 0, residence);
  exclusive_sum(g, mine ? done * ticks_per_ns - taken.due : 0, late);
  if (!is_leader(g)) return;
  served_counts& counts = drive.counts;
  add_count(counts.completed, completed);
  add_count(counts.residence, residence);
  if (device_ref<u64>(drive.in_flight).fetch_sub(served, relaxed) == served) add_count(counts.busy, done);
  if (service != 0) learn_lead(drive, service, lead, served, static_cast<long long>(late));
}

/// Takes new commands into the list, and serves what is due: what has just been taken, too, if its time has come. Twice, for
/// drives with a fault plan and for those without, which are not to pay for it; not inlined, or the plain drives would pay for
/// its registers. Group and view by value, as to every function here that is not inlined: what is handed on by its address lies
/// in memory, and is fetched again after each acquire. Collective, under the lock, which is given back.
template <bool faulty, thread_group G, class Clock>
PENSTOCK_COLD bool serve_waiting(G g, server_view view, queue_record& q, Clock& clock) {
  const queue_facts facts = q.facts;
  drive_record& drive = *facts.drive;
  waiting_span list{q.first_waiting, q.next_waiting};
  const drive_pace pace = drive.pace;
  const u64 lead = device_ref<u64>(drive.lead).load(relaxed);
  const u64 now = from_leader(g, clock.now()) * ticks_per_ns;
  const u64 free = facts.waiting_capacity - list.length();
  nvme::submission_entry command;
  const taken_batch batch = take_commands(g, facts, q, free < size(g) ? static_cast<u32>(free) : size(g), command);
  u64 in_flight_before = 0;
  if (batch.count != 0) in_flight_before = keep_waiting<faulty>(g, view, facts, pace, list, batch, command, now);
  g.sync();
  waiting_command taken;
  u64 next_due = 0;
  bool mine = false;
  if constexpr (faulty) {
    mine = take_any_due(g, facts, list, now, now + lead, taken);
    close_gaps(g, facts, list);
    if (list.length() == 0) next_due = ~u64{0};
  } else {
    mine = take_first_due(g, facts, list, now + lead, taken, next_due);
  }
  const bool due = any(g.ballot(mine));
  if (is_leader(g)) {
    q.first_waiting = list.first;
    q.next_waiting = list.next;
    // What waits is due a service time after it came, or later, and the lead is no longer than that.
    device_ref<u64>(q.next_due).store(next_due == 0 || next_due == ~u64{0} ? next_due : next_due - lead, relaxed);
  }
  if (due) enter_queue(g, view, q);
  unlock(g, q);
  if (batch.count != 0 && is_leader(g)) count_taken(drive, batch.count, in_flight_before, now);
  if (due) {
    finish_due<faulty>(g, facts, q, mine, taken, pace.service, lead, clock);
    leave_queue(g, view, q);
  }
  return due || batch.count != 0;
}

/// One look at one queue. Collective. True if anything moved.
template <thread_group G, class Clock>
PENSTOCK_FN bool serve_queue(G const& g, server_view const& view, queue_record& q, Clock& clock) {
  if (!try_lock(g, q)) return false;
  const u32 active = device_ref<u32>(q.active).load(relaxed);
  const queue_facts facts = q.facts;
  if (active == 0) {
    unlock(g, q);
    return false;
  }
  if (facts.plain) return serve_plain(g, view, facts, q);
  return facts.faulty ? serve_waiting<true>(g, view, q, clock) : serve_waiting<false>(g, view, q, clock);
}

/// Whether a visit is worth while; without the lock.
template <class Clock>
PENSTOCK_FN bool wants_visit(server_view const& view, queue_record& q, Clock& clock) {
  if (view.queues_come_and_go) return device_ref<u32>(q.active).load(acquire) != 0;
  // Four loads on their way at once, and then the one that needs two of them.
  u32* const doorbell = q.facts.rings.sq_doorbell;
  const u64 head = device_ref<u64>(q.posted).load(relaxed) & 0xffffu;
  const u64 due = device_ref<u64>(q.next_due).load(relaxed);
  if (device_ref<u32>(q.active).load(relaxed) == 0) return false;  // given back before this kernel started, its memory freed
  const u32 tail = system_ref<u32>(*doorbell).load(relaxed);
  return tail != head || (due != ~u64{0} && due <= clock.now() * ticks_per_ns);
}

/// Of `slots` queues, visits those of server `self` of `servers` once: every servers-th, or with more servers than queues one,
/// which it shares with others. Collective. True if anything moved.
template <thread_group G, class Clock>
PENSTOCK_FN bool serve_once(G const& g, server_view const& view, u32 slots, u32 self, u32 servers, Clock& clock) {
  if (slots == 0 || self / slots >= view.servers_per_queue) return false;
  const u32 begin = self % slots;
  const u32 stride = servers < slots ? servers : slots;
  bool moved = false;
  for (u32 base = begin; base < slots; base += stride * size(g)) {
    const u32 slot = base + stride * g.rank();
    auto visits = g.ballot(slot < slots && wants_visit(view, view.queues[slot], clock));
    while (any(visits)) {
      const u32 rank = lowest(visits);
      visits = without(visits, lane_mask{1} << rank);
      moved |= serve_queue(g, view, view.queues[base + stride * rank], clock);
    }
  }
  return moved;
}

/// Why a server left.
enum class leave_reason : u32 { stays = 0, told = 1, idle = 2 };

/// What one server does until it is told to leave: server 0 looks at the host's word for all of them and, if `idle_ns` is not
/// 0, gives up after so long without a command (a kernel that nobody stops costs the whole machine). Collective.
template <thread_group G, class Clock, class Idle>
PENSTOCK_FN void serve_until_told(G const& g, server_view const& view, u32 self, u32 servers, u64 idle_ns, Clock& clock,
                                  Idle& idle) {
  constexpr u64 look_every_ns = 20 * one_microsecond_ns;
  u64 last_look = 0, last_work = now_ns();
  if (is_leader(g)) raise_to(view.shared->last_work_ns, last_work);
  for (;;) {
    const auto word = static_cast<u32>(from_leader(g, device_ref<u32>(view.shared->slots_and_stop).load(relaxed)));
    if ((word & stop_bit) != 0) return;
    const bool moved = serve_once(g, view, word, self, servers, clock);
    moved ? idle.reset() : idle.wait();
    const u64 now = now_ns();
    if (is_leader(g) && moved && now - last_work > one_millisecond_ns) {
      last_work = now;
      raise_to(view.shared->last_work_ns, now);
    }
    if (self != 0 || !is_leader(g) || now - last_look < look_every_ns) continue;
    last_look = now;
    auto reason = leave_reason::stays;
    const u64 worked = device_ref<u64>(view.shared->last_work_ns).load(relaxed);
    if (idle_ns != 0 && now > worked && now - worked > idle_ns) reason = leave_reason::idle;
    if (system_ref<u32>(view.control->stop).load(relaxed) != 0) reason = leave_reason::told;
    if (reason == leave_reason::stays) continue;
    system_ref<u32>(view.control->left).store(static_cast<u32>(reason), relaxed);
    device_ref<u32>(view.shared->slots_and_stop).fetch_or(stop_bit, relaxed);
  }
}

}  // namespace penstock::controllers
