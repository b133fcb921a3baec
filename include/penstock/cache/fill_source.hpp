// Where the lines of a dataset come from: one value for each dataset. What differs between sources is the making of a fill
// (line_cache_view.hpp), the sending of it (coalesce/send_fills.hpp), and what is said here of when it is over.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

enum class fill_source : u32 {
  commands,  ///< of its volume: controllers store the bytes, and the sender of a fill goes on
  memory,    ///< that kernels reach: the group that misses copies them, or makes them (own_fill.hpp), all lanes together
};

/// Whether a fill of this source is over when it has been sent. Then nothing is gained by one ahead of need: its sender would
/// wait as the reader does. And a thread that is alone leaves it to its group, which copies faster.
PENSTOCK_FN constexpr bool ends_when_sent(fill_source source) { return source == fill_source::memory; }

}  // namespace penstock
