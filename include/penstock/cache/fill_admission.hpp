// Admission of fills: at most a share of a cache's frames is claimed by threads that wait for their lines. The others wait in
// order of arrival, asleep, and search for no frame: where threads outnumber frames, a search by all of them finds nothing but
// frames in flight.
//
// Invariants. A ticket may claim once it is below `done` + `most`. Tickets are numbered in order of arrival, and each is given
// back once, when its access is over: served, failed, or at its deadline, which comes to those that wait for their turn, too
// (they then try without it).
// - Progress: all tickets below the lowest that is out have been given back, so `done` is at least its number, and it is
//   admitted. It holds nothing while it waits (PROTOCOLS.md, W4).
// - Bound: at most `most` tickets claim at a time; one more for each that was given back before its turn, at its deadline or
//   because another turn had brought its line. A search that finds frames in use is short (victim_search), so that these do no
//   more harm than a second look.
// Both words are a throttle and order nothing: what they let through goes by the entry's own protocol.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/config.hpp"

namespace penstock {

/// Trivially copyable; the host-side `line_cache` owns what it points at.
struct fill_admission {
  u64* next = nullptr;  ///< the next ticket
  u64* done = nullptr;  ///< tickets that have been given back; in a sector of its own, for those that wait look at it
  u32 most = 0;         ///< 0: there are frames for all threads that can run at once, and no tickets

  PENSTOCK_FN bool applies() const { return most != 0; }
  /// The first of `count` tickets.
  PENSTOCK_FN u64 take(u64 count) const { return device_ref<u64>(*next).fetch_add(count, relaxed); }
  PENSTOCK_FN bool admits(u64 ticket) const { return ticket < device_ref<u64>(*done).load(relaxed) + most; }
  /// How many must be given back before a ticket is admitted. A hint.
  PENSTOCK_FN u64 turns_before(u64 ticket) const {
    const u64 end = device_ref<u64>(*done).load(relaxed) + most;
    return ticket < end ? 0 : ticket - end + 1;
  }
  PENSTOCK_FN void give_back(u64 count) const { device_ref<u64>(*done).fetch_add(count, relaxed); }
};

}  // namespace penstock
