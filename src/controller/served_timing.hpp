// When a modelled drive is done with a command: first come, first served over all of its queues. A clock that each command
// advances by its cost (IOPS limits; of a duplex drive one for reads and one for writes), units that serve at once, and a link
// that all drives of a server share, full duplex as PCIe is.
//
// A batch takes each clock with one addition, whatever its length; nobody holds a lock. Between two servers of one drive the
// order is that of the additions.
//
// The clocks are those of the drive alone. Moving the bytes and posting take the server some time, too, so it begins so much
// earlier: the drive's `lead`, which it learns from how late its commands were. The clocks know nothing of it.
#pragma once

#include "served_records.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock::controllers {

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
  const auto payers = g.ballot(cost != 0);
  if (!any(payers)) return now;
  const u64 price = g.shfl(cost, lowest(payers));
  u64 total = price * count(payers), before = price * count_below(payers, g.rank());
  if (any(g.ballot(cost != 0 && cost != price))) before = exclusive_sum(g, cost, total);
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
PENSTOCK_COLD u64 occupy_unit(G g, drive_record& drive, u32 direction, bool mine, u64 start) {
  const auto takers = g.ballot(mine);
  u64 first = 0;
  if (is_leader(g)) first = device_ref<u64>(drive.unit_ticket[direction]).fetch_add(count(takers), relaxed);
  const u64 ticket = from_leader(g, first) + count_below(takers, g.rank());
  const u64 units = drive.pace.units, service = drive.pace.service;
  unit_slot& slot = drive.unit_slots[direction * units + ticket % units];
  u64 done = start + service;
  backoff wait(~0ull >> 1);
  for (bool waiting = mine; any(g.ballot(waiting));) {
    if (!waiting) continue;
    const u64 expected = ticket < units ? 0 : ticket - units + 1;
    if (device_ref<u64>(slot.ticket).load(acquire) != expected) {
      wait.pause();
      continue;
    }
    if (slot.free_at > start) done = slot.free_at + service;
    slot.free_at = done;
    device_ref<u64>(slot.ticket).store(ticket + 1, release);
    waiting = false;
  }
  return done;
}

/// When a command of `bytes` that was fetched at `now` is done. Collective; `mine` members have one each.
template <thread_group G>
PENSTOCK_FN u64 admit(G const& g, server_view const& view, drive_record& drive, drive_pace const& pace, bool mine, bool write,
                      u64 bytes, u64 now) {
  const command_cost cost = write ? pace.write_cost : pace.read_cost;
  const u64 price = mine ? cost.of(bytes) : 0;
  const bool apart = pace.duplex && write;
  u64 start = advance_clock(g, drive.clock, now, apart ? 0 : price);
  if (pace.duplex) {
    const u64 write_start = advance_clock(g, drive.write_clock, now, apart ? price : 0);
    if (apart) start = write_start;
  }
  u64 done = start + pace.service;
  if (pace.units != 0 && pace.service != 0) {
    done = occupy_unit(g, drive, 0, mine && !apart, start);
    if (pace.duplex) {
      const u64 write_done = occupy_unit(g, drive, 1, mine && apart, start);
      if (apart) done = write_done;
    }
  }
  if (view.link_ticks_per_mib != 0) {
    const u64 transfer = mine ? link_cost(bytes, view.link_ticks_per_mib) : 0;
    const u64 sent = advance_clock(g, view.shared->link_read_clock, now, write ? 0 : transfer);
    const u64 received = advance_clock(g, view.shared->link_write_clock, now, write ? transfer : 0);
    const u64 arrived = (write ? received : sent) + transfer;
    if (arrived > done) done = arrived;
  }
  return done;
}

/// Commands over which the lead forgets what it has learnt.
inline constexpr u32 lead_memory = 64;

/// `served` commands of a batch that was begun with `lead` were done `late` ticks after they were due, all together (less than
/// 0: before). What lead would have been right for them does not depend on the one they had, so any number of servers may learn
/// from their batches at once; an update that another one overwrites is lost, and no harm. Where serving takes longer than the
/// drive, commands are begun as they are fetched, and no lead is long enough. REQUIRES: served <= lead_memory. One member calls
/// it.
PENSTOCK_FN inline void learn_lead(drive_record& drive, u64 service, u64 lead, u32 served, long long late) {
  // Sums over the batch, so that nothing is divided: GPUs do that in a hundred steps.
  const long long had = static_cast<long long>(lead) * served, most = static_cast<long long>(service) * served;
  long long right = had + late;
  right = right < 0 ? 0 : right > most ? most : right;
  const device_ref<u64> word(drive.lead);
  const auto known = static_cast<long long>(word.load(relaxed));
  word.store(static_cast<u64>(known + (right - known * served) / static_cast<long long>(lead_memory)), relaxed);
}

}  // namespace penstock::controllers
