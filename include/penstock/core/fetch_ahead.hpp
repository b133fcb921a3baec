// Asks for memory before it is needed.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// Asks a CPU's caches for the line at an address, which is to be changed. A GPU runs other warps while one waits for its line.
PENSTOCK_FN inline void fetch_ahead([[maybe_unused]] void const* p) {
#if !PENSTOCK_ON_DEVICE
  __builtin_prefetch(p, 1);
#endif
}

}  // namespace penstock
