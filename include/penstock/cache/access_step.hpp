// What an access to a line comes to, one step at a time.
#pragma once

#include "penstock/core/clock.hpp"

namespace penstock {

/// How one step of an access ended.
enum class access_step : u32 {
  pinned,     ///< valid, and this thread holds a pin
  filling,    ///< a fill is in flight, and this thread holds a pin
  claimed,    ///< this thread claimed it and owns a frame for it: submit its fill
  queue,      ///< in no frame, and the caller may not claim one yet (fill_admission.hpp): nothing is held
  again,      ///< lost a race, or others must leave first
  no_frame,   ///< no victim: nothing is held
  pin_limit,  ///< as many pins as the entry counts: nothing is held
};

/// How a claim searches for a frame, and how long it took. Of one thread, in registers: a hit leaves it alone.
struct victim_search {
  /// After so many frames in use a group goes on with what it has: a longer search would keep it from reading the lines that
  /// have come for it, and from giving back the frames that others search for.
  static constexpr u32 brief = 64;

  u64 ns = 0;
  u32 most_in_use = ~0u;  ///< gives up after so many frames that are pinned or in flight
  bool made = false;

  /// Calls find() and adds what it took.
  template <class Find>
  PENSTOCK_FN auto time(Find const& find) {
    const u64 begun = now_ns();
    const auto found = find();
    ns += now_ns() - begun;
    made = true;
    return found;
  }
};

}  // namespace penstock
