// A hash table from nodes to their local numbers, with open addressing. Whoever meets a node first in the order of the sample,
// and not in time, is the one that numbers it.
#pragma once

#include "penstock/core/atomic.hpp"

namespace penstock::sampling {

/// A node of one tree of a disjoint sample, or of the sample.
PENSTOCK_FN constexpr u64 node_key(u64 node, u32 tree) { return u64{tree} << 40 | node; }
inline constexpr u64 max_nodes = u64{1} << 40, max_trees = (u64{1} << 24) - 1;
inline constexpr u64 no_key = ~u64{0};

/// Values: local numbers; from `pending` on the position of an edge that led to a node without a number.
inline constexpr u32 pending = u32{1} << 31, no_value = ~u32{0};

/// INVARIANT: at most half of the slots have keys, so each search ends. A slot's key never changes; its value only falls.
struct node_table {
  u64* keys = nullptr;    ///< [slots]
  u32* values = nullptr;  ///< [slots]
  u64 slots = 0;          ///< a power of two

  /// The slot of a key, which has a value of at most `value` from now on.
  PENSTOCK_FN u64 insert(u64 key, u32 value) const {
    u64 slot = first_slot(key);
    for (;; slot = (slot + 1) & (slots - 1)) {
      const device_ref<u64> at(keys[slot]);
      u64 there = at.load(relaxed);
      if (there == key) break;
      if (there != no_key) continue;
      if (at.compare_exchange_strong(there, key, relaxed, relaxed) || there == key) break;
    }
    if (device_ref<u32>(values[slot]).load(relaxed) > value) lower_to(values[slot], value);
    return slot;
  }
  /// REQUIRES: the key is there, and nothing is inserted beside.
  PENSTOCK_FN u32 value_of(u64 key) const {
    u64 slot = first_slot(key);
    while (keys[slot] != key) slot = (slot + 1) & (slots - 1);
    return values[slot];
  }
  /// Likewise, but no_value where the key is not there.
  PENSTOCK_FN u32 find(u64 key) const {
    for (u64 slot = first_slot(key);; slot = (slot + 1) & (slots - 1)) {
      if (keys[slot] == key) return values[slot];
      if (keys[slot] == no_key) return no_value;
    }
  }

 private:
  // The finalizer of MurmurHash3.
  PENSTOCK_FN u64 first_slot(u64 key) const {
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdull;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ull;
    return (key ^ key >> 33) & (slots - 1);
  }
};

}  // namespace penstock::sampling
