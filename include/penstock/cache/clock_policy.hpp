// CLOCK: a hand goes round the frames; a referenced line gets a second turn. The bit is set only when it is not set yet, so
// hits stay read-only.
//
// A replacement policy is a type with these three functions. `candidate` may be called by any thread at any time; a search asks
// for at most `search_limit` candidates.
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/core/atomic.hpp"

#include <concepts>

namespace penstock {

template <class P>
concept replacement_policy = std::is_trivially_copyable_v<P> && requires(P const& policy, u64& word, u64 seen) {
  { policy.candidate() } -> std::same_as<u32>;          // the next frame to look at
  { policy.search_limit() } -> std::same_as<u64>;       // bound of one search (PROTOCOLS.md, W3)
  { policy.spares(word, seen) } -> std::same_as<bool>;  // true: leave this line alone for now
};

struct clock_policy {
  u64* hand = nullptr;
  u32 frames = 0;

  // The remainder of 32 bits: of 64, it takes a GPU longer than the atomic.
  PENSTOCK_FN u32 candidate() const { return static_cast<u32>(device_ref<u64>(*hand).fetch_add(1, relaxed)) % frames; }

  /// Two turns: the first may do nothing but take referenced bits away.
  PENSTOCK_FN u64 search_limit() const { return 2ull * frames; }

  PENSTOCK_FN static bool spares(u64& word, u64 seen) {
    if ((seen & entry::referenced_bit) == 0) return false;
    device_ref<u64>(word).fetch_and(~entry::referenced_bit, relaxed);
    return true;
  }
};
static_assert(replacement_policy<clock_policy>);

}  // namespace penstock
