// Calls back into host code from a body that also compiles for a GPU.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// Calls function(object, argument) on the CPU, if there is a function; nothing on a GPU, where none can be reached.
PENSTOCK_FN inline void call_on_host([[maybe_unused]] void (*function)(void*, u16), [[maybe_unused]] void* object,
                                     [[maybe_unused]] u16 argument) {
#if !PENSTOCK_ON_DEVICE
  if (function != nullptr) function(object, argument);
#endif
}

}  // namespace penstock
