// The serving body of the modelled drives: one source, walked by warps of a resident kernel (model_kernel.cu) and by threads of
// the host (model_server.cpp).
//
// A plain drive's commands are served as they are taken. With a timing or a fault plan they are taken into the queue's list of
// waiting commands with the time at which each is due, and served when it has come.
#pragma once

#include "served_ring.hpp"
#include "served_timing.hpp"
#include "served_transfer.hpp"

#include "penstock/core/clock.hpp"

namespace penstock::far_side {

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

/// Keeps member k's command until it is due. Collective, under the lock.
template <thread_group G>
PENSTOCK_FN void keep_waiting(G const& g, server_view const& view, queue_facts const& facts, queue_record& q,
                              taken_batch const& batch, nvme::submission_entry const& command, u64 now) {
  drive_record& drive = *facts.drive;
  const bool mine = g.rank() < batch.count;
  served_transfer transfer;
  if (mine) transfer = decode(drive, command);
  u64 due = admit(g, view, drive, mine, transfer.write, transfer.bytes, now);
  fault_draw faults;
  if (mine) {
    faults = draw_faults(drive.faults, facts.rings.id, batch.number + g.rank());
    due += (faults.delay ? drive.delay : 0) + (faults.late ? drive.late : 0);
    const u64 position = q.next_waiting + g.rank();
    facts.waiting[position % facts.waiting_capacity] = {
        command, due, now, faults.random, faults.error_code, true, faults.drop, faults.duplicate, faults.unknown_identifier};
  }
  const u32 errors = count(g.ballot(mine && faults.error_code != 0));
  const u32 delays = count(g.ballot(mine && faults.delay));
  const u32 lates = count(g.ballot(mine && faults.late));
  g.sync();
  if (!is_leader(g)) return;
  q.next_waiting += batch.count;
  add_count(drive.counts.fetched, batch.count);
  add_count(drive.counts.errors, errors);
  add_count(drive.counts.delays, delays);
  add_count(drive.counts.lates, lates);
  const u64 before = device_ref<u64>(drive.in_flight).fetch_add(batch.count, relaxed);
  // Ends and begins of busy periods are summed, so it does not matter in which order two servers add theirs.
  if (before == 0) add_count(drive.counts.busy, 0 - now / ticks_per_ns);
  raise_to(drive.most_in_flight, before + batch.count);
}

/// Takes up to a group's width of commands that are due. True in the members that got one. Collective, under the lock.
template <thread_group G>
PENSTOCK_FN bool take_due(G const& g, queue_facts const& facts, queue_record& q, u64 now, waiting_command& taken) {
  drive_record& drive = *facts.drive;
  const u64 first = q.first_waiting, span = q.next_waiting - first;
  const u64 turn = drive.reorder && span != 0 ? random_draws(drive.faults.seed, facts.rings.id, now).below(span) : 0;
  bool mine = false;
  for (u64 offset = 0; offset < span; offset += size(g)) {
    const u64 k = offset + g.rank();
    if (k < span) {
      waiting_command& slot = facts.waiting[(first + (k + turn) % span) % facts.waiting_capacity];
      mine = slot.used && slot.due <= now;
      if (mine) {
        taken = slot;
        slot.used = false;
      }
    }
    if (any(g.ballot(mine)) || drive.due_in_order) break;
  }
  return mine;
}

/// Forgets what was taken from the front of the list, and says when the next one is due. Collective, under the lock.
template <thread_group G>
PENSTOCK_FN void close_gaps(G const& g, queue_facts const& facts, queue_record& q) {
  g.sync();
  u64 first = q.first_waiting;
  const u64 end = q.next_waiting;
  for (;;) {
    const bool gap = first + g.rank() < end && !facts.waiting[(first + g.rank()) % facts.waiting_capacity].used;
    const auto kept = without(g.members(), g.ballot(gap));
    const u32 gaps = any(kept) ? lowest(kept) : size(g);
    first += gaps;
    if (gaps < size(g)) break;
  }
  g.sync();
  if (!is_leader(g)) return;
  q.first_waiting = first;
  const u64 due = first == end ? ~u64{0} : facts.drive->due_in_order ? facts.waiting[first % facts.waiting_capacity].due : 0;
  device_ref<u64>(q.next_due).store(due, relaxed);
}

/// Serves what was taken and posts it, with everything that the plan wants. Collective, without the lock.
template <thread_group G, class Clock>
PENSTOCK_FN void finish_due(G const& g, queue_facts const& facts, queue_record& q, bool mine, waiting_command const& taken,
                            Clock& clock) {
  drive_record& drive = *facts.drive;
  served_transfer transfer;
  if (mine) transfer = taken.error_code != 0 ? refused(taken.error_code) : decode(drive, taken.command);
  order_claim_before_bytes();
  move_batch(g, transfer);
  count_batch(g, drive.counts, transfer);
  const bool answered = mine && !taken.drop;
  const bool unknown = answered && taken.unknown_identifier, twice = answered && taken.duplicate;
  const u16 id = taken.command.command_id;
  if (drive.completions_per_command > 1) {
    // Hosts number their commands from 0 (slot + depth x generation), so the upper half of the identifiers is free.
    const auto nobody = static_cast<u16>(0x8000u | (taken.random & 0x7fffu));
    post_completions(g, facts, q, unknown, place_in_order(g, unknown), nobody, nvme::code::success);
  }
  const u32 place = drive.reorder ? place_at_random(g, answered, taken.random) : place_in_order(g, answered);
  post_completions(g, facts, q, answered, place, id, transfer.status);
  if (drive.completions_per_command > 1) post_completions(g, facts, q, twice, place_in_order(g, twice), id, transfer.status);

  const u64 done = from_leader(g, clock.now());
  const u32 served = count(g.ballot(mine)), completed = count(g.ballot(answered));
  const u32 unknowns = count(g.ballot(unknown)), twices = count(g.ballot(twice));
  u64 residence = 0;
  exclusive_sum(g, mine ? done - taken.fetched / ticks_per_ns : 0, residence);
  if (!is_leader(g)) return;
  served_counts& counts = drive.counts;
  add_count(counts.completed, completed);
  add_count(counts.drops, served - completed);
  add_count(counts.unknown_identifiers, unknowns);
  add_count(counts.duplicates, twices);
  add_count(counts.residence, residence);
  const u64 unused = u64{served} * drive.completions_per_command - completed - unknowns - twices;
  if (unused != 0) device_ref<u64>(q.reserved).fetch_sub(unused, relaxed);
  if (device_ref<u64>(drive.in_flight).fetch_sub(served, relaxed) == served) add_count(counts.busy, done);
}

/// Takes new commands into the list, and serves what is due. Not inlined, or the plain drives would pay for its registers.
/// Collective, under the lock, which is given back.
template <thread_group G, class Clock>
PENSTOCK_COLD bool serve_waiting(G const& g, server_view const& view, queue_record& q, Clock& clock) {
  const queue_facts facts = q.facts;
  const u64 now = from_leader(g, clock.now()) * ticks_per_ns;
  const u64 free = facts.waiting_capacity - (q.next_waiting - q.first_waiting);
  nvme::submission_entry command;
  const taken_batch batch = take_commands(g, facts, q, free < size(g) ? static_cast<u32>(free) : size(g), command);
  if (batch.count != 0) keep_waiting(g, view, facts, q, batch, command, now);
  g.sync();
  waiting_command taken;
  const bool mine = take_due(g, facts, q, now, taken);
  close_gaps(g, facts, q);
  const bool due = any(g.ballot(mine));
  if (due) enter_queue(g, view, q);
  unlock(g, q);
  if (due) {
    finish_due(g, facts, q, mine, taken, clock);
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
  return facts.plain ? serve_plain(g, view, facts, q) : serve_waiting(g, view, q, clock);
}

/// Whether a visit is worth while; without the lock.
template <class Clock>
PENSTOCK_FN bool wants_visit(server_view const& view, queue_record& q, Clock& clock) {
  if (view.queues_come_and_go) return device_ref<u32>(q.active).load(acquire) != 0;
  if (device_ref<u32>(q.active).load(relaxed) == 0) return false;  // given back before this kernel started, its memory freed
  // Three loads on their way at once.
  const u32 tail = system_ref<u32>(*q.facts.rings.sq_doorbell).load(relaxed);
  const u64 head = device_ref<u64>(q.posted).load(relaxed) & 0xffffu;
  const u64 due = device_ref<u64>(q.next_due).load(relaxed);
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

}  // namespace penstock::far_side
