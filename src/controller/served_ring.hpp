// The far side of one queue pair, for a group: takes batches of commands out of the submission ring, and posts batches of
// completions. Partners of the orders: PROTOCOLS.md §3, lines 16, 21, 23 and 32.
//
// REQUIRES of every group here: its members are ranks 0 to size - 1 (a whole warp, a lone thread).
#pragma once

#include "served_records.hpp"

#include "penstock/core/memory_access.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock::controllers {

struct taken_batch {
  u32 count = 0;   ///< commands
  u32 head = 0;    ///< where the first one lies
  u64 number = 0;  ///< of the first one on this queue
};

/// Tried, never waited for. Collective; true: what the last holder wrote is visible to all members.
template <thread_group G>
PENSTOCK_FN bool try_lock(G const& g, queue_record& q) {
  bool mine = false;
  if (is_leader(g)) {
    const device_ref<u32> lock(q.lock);
    mine = lock.load(relaxed) == 0 && lock.exchange(1, acquire) == 0;
  }
  mine = from_leader(g, mine) != 0;
  g.sync();
  return mine;
}

template <thread_group G>
PENSTOCK_FN void unlock(G const& g, queue_record& q) {
  g.sync();
  if (is_leader(g)) device_ref<u32>(q.lock).store(0, release);
}

PENSTOCK_FN inline void refuse_doorbell(queue_record& q, u32 value, u32& last_refused) {
  if (value == last_refused) return;
  last_refused = value;
  device_ref<u64>(q.counts.refused_doorbells).fetch_add(1, relaxed);
}

/// Completions for which there is room and no reservation. Leader, under the lock.
PENSTOCK_FN inline u64 completion_room(queue_facts const& facts, queue_record& q, queue_positions& at, u64 reserved,
                                       u64 wanted) {
  const u32 entries = facts.rings.cq_entries;
  const u64 room = entries - 1 - (reserved - at.cq_seen);
  if (room >= wanted) return room;
  const u32 head = system_ref<u32>(*facts.rings.cq_doorbell).load(acquire);  // the host has read the entries before it
  const auto seen = static_cast<u32>(at.cq_seen % entries);
  const u32 freed = head >= seen ? head - seen : head + entries - seen;
  const u64 posted = device_ref<u64>(q.posted).load(relaxed) >> 16;
  if (head >= entries || freed > posted - at.cq_seen) {
    refuse_doorbell(q, head, at.refused_head);
    return room;
  }
  at.cq_seen += freed;
  return room + freed;
}

/// Commands that may be taken, at most `most`, with room for their completions reserved. Leader, under the lock.
PENSTOCK_FN inline u32 reserve_commands(queue_facts const& facts, queue_record& q, queue_positions& at, u32 most) {
  // Two loads on their way at once. Others only lower what is reserved, so an early look is a cautious one.
  const u64 reserved = device_ref<u64>(q.reserved).load(relaxed);
  const u32 tail = system_ref<u32>(*facts.rings.sq_doorbell).load(acquire);  // the entries before it are written
  if (tail >= facts.rings.sq_entries) {
    refuse_doorbell(q, tail, at.refused_tail);
    return 0;
  }
  u32 n = tail >= at.sq_head ? tail - at.sq_head : tail + facts.rings.sq_entries - at.sq_head;
  if (n > most) n = most;
  if (n == 0) return 0;
  const u32 each = facts.completions_per_command;
  const u64 room = completion_room(facts, q, at, reserved, u64{n} * each);
  if (u64{n} * each > room) n = static_cast<u32>(room) / each;
  if (n != 0) device_ref<u64>(q.reserved).fetch_add(u64{n} * each, relaxed);
  return n;
}

/// One entry, as it lies in the ring. Four loads on their way at once.
PENSTOCK_FN inline void fetch_entry(queue_facts const& facts, u32 slot, nvme::submission_entry& command) {
  const u64 address = reinterpret_cast<u64>(facts.rings.sq + slot);
  const piece16 parts[4] = {load_shared(address), load_shared(address + 16), load_shared(address + 32),
                            load_shared(address + 48)};
  std::memcpy(&command, parts, sizeof command);
  if (!facts.poison_fetched) return;
  for (u32 k = 0; k < 4; ++k) store_shared(address + 16 * k, {0xa5a5a5a5a5a5a5a5u, 0xa5a5a5a5a5a5a5a5u});
}

/// Takes up to `most` commands (at most one per member): member k < count gets the k-th. Collective, under the lock.
template <thread_group G>
PENSTOCK_FN taken_batch take_commands(G const& g, queue_facts const& facts, queue_record& q, u32 most,
                                      nvme::submission_entry& command) {
  taken_batch batch;
  queue_positions at;
  if (is_leader(g)) {
    at = q.positions;
    batch.head = at.sq_head;
    batch.number = at.fetched;
    batch.count = reserve_commands(facts, q, at, most);
  }
  const u64 packed = from_leader(g, batch.count | static_cast<u64>(batch.head) << 32);
  batch.count = static_cast<u32>(packed);
  batch.head = static_cast<u32>(packed >> 32);
  batch.number = from_leader(g, batch.number);
  g.sync();  // hands the leader's acquire of the doorbell on
  const u32 entries = facts.rings.sq_entries;
  if (g.rank() < batch.count) {
    const u32 slot = batch.head + g.rank();
    fetch_entry(facts, slot < entries ? slot : slot - entries, command);
  }
  g.sync();  // all have read before the head says so
  if (!is_leader(g)) return batch;
  at.sq_head = batch.head + batch.count < entries ? batch.head + batch.count : batch.head + batch.count - entries;
  at.fetched += batch.count;
  q.positions = at;
  // The head is a field of the word that completions are counted in, so that they tell heads in the order in which they stand
  // in the ring: the host takes a head that goes back for one that went round.
  if (batch.count != 0) device_ref<u64>(q.posted).fetch_add(static_cast<u64>(at.sq_head) - batch.head, release);
  return batch;
}

/// Where this member's completion stands among those that are posted together: in the order of the ranks. Collective.
template <thread_group G>
PENSTOCK_FN u32 place_in_order(G const& g, bool mine) {
  return count_below(g.ballot(mine), g.rank());
}

/// Likewise, in the order of random keys. Collective.
template <thread_group G>
PENSTOCK_FN u32 place_at_random(G const& g, bool mine, u64 key) {
  const auto all = g.ballot(mine);
  u32 place = 0;
  for (auto left = all; any(left);) {
    const u32 other = lowest(left);
    left = without(left, lane_mask{1} << other);
    const u64 its = g.shfl(key, other);
    if (its < key || (its == key && other < g.rank())) ++place;
  }
  return place;
}

/// Times that a count of entries has gone round a ring. A division of 64 bits is a hundred steps on a GPU.
PENSTOCK_FN inline u64 laps(u64 position, u32 entries) {
  return is_power_of_two(entries) ? position >> lowest_bit(entries) : position / entries;
}

/// Members with `mine` post one completion each, each at its place. What all members have moved is visible to whoever sees a
/// phase. REQUIRES: room was reserved. Collective; needs no lock.
template <thread_group G>
PENSTOCK_FN void post_completions(G const& g, queue_facts const& facts, queue_record& q, bool mine, u32 place, u16 id,
                                  u16 status) {
  const auto posting = g.ballot(mine);
  if (!any(posting)) return;
  u64 before = 0;
  if (is_leader(g)) before = device_ref<u64>(q.posted).fetch_add(static_cast<u64>(count(posting)) << 16, acq_rel);
  before = from_leader(g, before);
  // Each completion speaks for the bytes that all members moved, and for the entries before the head, whoever read them.
  g.sync();
  if (!mine) return;
  const u64 position = (before >> 16) + place;
  const u32 entries = facts.rings.cq_entries;
  const u64 lap = laps(position, entries);
  nvme::completion_entry& entry = facts.rings.cq[position - lap * entries];
  const u32 queue = static_cast<u32>(before & 0xffffu) | static_cast<u32>(facts.rings.id) << 16;
  if (facts.torn_completion) {
    system_ref<u32>(entry.result).store(~0u, relaxed);
    system_ref<u32>(entry.queue).store(~queue, relaxed);
  }
  system_ref<u32>(entry.result).store(0, relaxed);
  system_ref<u32>(entry.reserved).store(0, relaxed);
  system_ref<u32>(entry.queue).store(queue, relaxed);
  publish_word(entry.outcome, nvme::make_outcome(id, 1 - static_cast<u32>(lap & 1), status), facts.within_gpu);
}

}  // namespace penstock::controllers
