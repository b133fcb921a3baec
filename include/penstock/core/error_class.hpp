// What kind of failure a status stands for: what a retry policy decides by.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// A bit each.
enum class error_class : u32 {
  transient = 1u << 0,  ///< may be over soon: busy, not ready, aborted, transfer error, a path that is being changed
  media = 1u << 1,      ///< these bytes cannot be read or written
  space = 1u << 2,      ///< no room
  late = 1u << 3,       ///< no answer in time; the command may still be under way
  reset = 1u << 4,      ///< the controller was reset under the command
  permanent = 1u << 5,  ///< wrong, forbidden, or given up
};

PENSTOCK_FN constexpr u32 bit_of(error_class c) { return static_cast<u32>(c); }

}  // namespace penstock
