// When a modelled drive is done with a command: first come, first served over all of its queues. A clock that each command
// advances by its cost (IOPS limits), units that serve at once, and a link that all drives of a server share.
//
// A batch takes each clock with one addition, whatever its length; nobody holds a lock. Between two servers of one drive the
// order is that of the additions.
#pragma once

#include "served_records.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock::far_side {

/// Sum of the values of all members of a lower rank; `total` of all. Collective; ranks are 0 to size - 1.
template <thread_group G>
PENSTOCK_FN u64 exclusive_sum(G const& g, u64 value, u64& total) {
  u64 sum = value;
  const u32 members = size(g);
  for (u32 distance = 1; distance < members; distance *= 2) {
    const u64 lower = g.shfl(sum, g.rank() >= distance ? g.rank() - distance : g.rank());
    if (g.rank() >= distance) sum += lower;
  }
  total = g.shfl(sum, members - 1);
  return sum - value;
}

/// Takes `cost` off a clock that never lags behind `now`: when this member's share begins. Collective.
template <thread_group G>
PENSTOCK_FN u64 advance_clock(G const& g, u64& clock, u64 now, u64 cost) {
  u64 total = 0;
  const u64 before = exclusive_sum(g, cost, total);
  if (total == 0) return now;
  u64 begin = 0;
  if (is_leader(g)) {
    raise_to(clock, now);
    begin = device_ref<u64>(clock).fetch_add(total, relaxed);
  }
  return from_leader(g, begin) + before;
}

/// Waits for a unit, serves on it: ticket t follows ticket t - units. When the command is done. Collective; `mine` members have
/// one each. The tickets before these are in the hands of groups that run and publish them without waiting for anyone later.
template <thread_group G>
PENSTOCK_FN u64 occupy_unit(G const& g, drive_record& drive, bool mine, u64 start) {
  const auto takers = g.ballot(mine);
  u64 first = 0;
  if (is_leader(g)) first = device_ref<u64>(drive.unit_ticket).fetch_add(count(takers), relaxed);
  const u64 ticket = from_leader(g, first) + count_below(takers, g.rank());
  unit_slot& slot = drive.unit_slots[ticket % drive.units];
  u64 done = start + drive.service;
  backoff wait(~0ull >> 1);
  for (bool waiting = mine; any(g.ballot(waiting));) {
    if (!waiting) continue;
    const u64 expected = ticket < drive.units ? 0 : ticket - drive.units + 1;
    if (device_ref<u64>(slot.ticket).load(acquire) != expected) {
      wait.pause();
      continue;
    }
    if (slot.free_at > start) done = slot.free_at + drive.service;
    slot.free_at = done;
    device_ref<u64>(slot.ticket).store(ticket + 1, release);
    waiting = false;
  }
  return done;
}

/// When a command of `bytes` that was fetched at `now` is done. Collective; `mine` members have one each.
template <thread_group G>
PENSTOCK_FN u64 admit(G const& g, server_view const& view, drive_record& drive, bool mine, bool write, u64 bytes, u64 now) {
  const command_cost& cost = write ? drive.write_cost : drive.read_cost;
  const u64 start = advance_clock(g, drive.clock, now, mine ? cost.of(bytes) : 0);
  u64 done = start + drive.service;
  if (drive.units != 0 && drive.service != 0) done = occupy_unit(g, drive, mine, start);
  if (view.link_eighths_per_kib != 0) {
    const u64 transfer = mine ? bytes * view.link_eighths_per_kib / 1024 : 0;
    const u64 arrived = advance_clock(g, view.shared->link_clock, now, transfer) + transfer;
    if (arrived > done) done = arrived;
  }
  return done;
}

}  // namespace penstock::far_side
