// Where the rows of a table that another is joined with lie in its lookups: by their keys, where these are near each other;
// else in slots: open addressing, each key in the first slot from its own on that was free, at least half of them free.
#pragma once

#include "penstock/core/config.hpp"

#include <optional>
#include <span>
#include <vector>

namespace penstock::columns {

/// Where the search for a key begins. REQUIRES: slots a power of two.
PENSTOCK_FN inline u64 first_slot(u64 key, u64 slots) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdull;  // the finalizer of MurmurHash3
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ull;
  return (key ^ key >> 33) & (slots - 1);
}

struct placed_keys {
  u64 places = 0;             ///< of slots a power of two
  bool by_value = false;      ///< a key's place is its distance from `low`
  u64 low = 0;                ///< likewise
  std::vector<u64> place_of;  ///< of each key; of one that stands twice the same
  std::optional<u64> again;   ///< the first that stands twice, by its number
};

/// Keys are int64. They lie by their values where these span at most twice the slots that they would need.
placed_keys place_keys(std::span<u64 const> keys);

}  // namespace penstock::columns
