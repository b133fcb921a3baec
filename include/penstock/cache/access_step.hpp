// What an access to a line comes to, one step at a time.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// How one step of an access ended.
enum class access_step : u32 {
  pinned,     ///< valid, and this thread holds a pin
  filling,    ///< somebody's fill is in flight, and this thread holds a pin
  claimed,    ///< this thread claimed it and owns a frame for it: submit its fill
  again,      ///< lost a race, or others must leave first
  no_frame,   ///< no victim: nothing is held
  pin_limit,  ///< as many pins as the entry counts: nothing is held
};

}  // namespace penstock
