// A copy that somebody watches, and may stop.
#pragma once

#include "penstock/executor/memory.hpp"
#include "penstock/rows/row_array.hpp"

#include <algorithm>

namespace penstock::rows {

/// So much between two looks of the watcher: a few ms over a link, and few enough looks.
inline constexpr u64 copied_at_once = 64ull << 20;

/// Copies from the host to memory of an executor, and tells `watch` (if there is one) what is done; what it throws ends the
/// copy.
inline void watched_copy(memory_resource& memory, std::byte* to, std::byte const* from, u64 bytes, row_progress const& watch) {
  for (u64 done = 0; done < bytes;) {
    const u64 part = std::min(copied_at_once, bytes - done);
    memory.write(to + done, from + done, part);
    done += part;
    if (watch) watch(done, bytes);
  }
}

}  // namespace penstock::rows
