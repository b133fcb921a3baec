// Groups by any keys: a hash table of slots, each with the key of a group and what is summed up of its rows, side by side.
//
// A key is one to max_key_words words, none of which is `free_word`. A thread that looks for a key goes over the slots from the
// key's own on, and in each over the key's words: it takes a word that is free by a compare-and-swap, and leaves the slot for
// the next at the first word that is another's. A word that was taken never changes. So a slot that one thread leaves for its
// key, all threads leave for that key, and no key is in two slots; a slot whose last word is taken belongs to the thread's key
// that took it. No thread waits for another, and all orders are relaxed: what is summed up was set before the launch, and is
// read after it.
#pragma once

#include "libs/columns/accumulator.hpp"
#include "penstock/core/fetch_ahead.hpp"

namespace penstock::columns {

inline constexpr u64 free_word = ~u64{0}, no_slot = ~u64{0};
inline constexpr u32 max_key_words = 16;

/// What is summed up, and in which words of a slot.
struct slot_aggregate {
  aggregate of;
  u32 at = 0;      ///< of an integer sum the lower word; the upper one follows
  u32 counts = 0;  ///< the word that counts values that are not null; 0: none
};

struct group_slots {
  u64* words = nullptr;  ///< [slots][stride]: a key, and what is summed up
  u64 slots = 0;         ///< a power of two
  u64 probes = 0;        ///< slots that are looked at for a key, before the table is full
  u32* full = nullptr;   ///< becomes 1
  u32 stride = 0;
  u32 key_words = 1;
  u32 count = 0;                ///< of `list`
  u8 keys[max_key_words] = {};  ///< registers
  slot_aggregate list[max_aggregates];
};

/// Words that an aggregate takes, without its count.
PENSTOCK_FN constexpr u32 words_of(aggregate_kind what) {
  if (what == aggregate_kind::rows || what == aggregate_kind::count) return 0;
  return what == aggregate_kind::integer_sum ? 2 : 1;
}

/// Whether the word was free, and is the key's now, or was the key's.
PENSTOCK_FN inline bool take_word(u64& word, u64 key) {
  device_ref<u64> at(word);
  u64 seen = at.load(relaxed);
  if (seen == free_word && at.compare_exchange_strong(seen, key, relaxed, relaxed)) return true;
  return seen == key;
}

/// Where the search for a key begins, which key_of(w) gives the words of. `shape`: of the slots, which may be constants.
template <bool Unrolled, class Key>
PENSTOCK_FN inline u64 first_slot_of(group_slots const& in, group_slots const& shape, Key const& key_of) {
  u64 hash = 0;
  each_below<Unrolled>(shape.key_words, [&](u32 w) { hash = w == 0 ? key_of(w) : mixed(hash) + key_of(w); });
  return first_slot(hash, in.slots);
}

/// The slot of a key, from `slot` on; no_slot: the table is full.
template <bool Unrolled, class Key>
PENSTOCK_FN inline u64 find_or_add(group_slots const& in, group_slots const& shape, u64 slot, Key const& key_of) {
  for (u64 probe = 0; probe < in.probes; ++probe, slot = (slot + 1) & (in.slots - 1)) {
    u64* const words = in.words + slot * shape.stride;
    if constexpr (Unrolled) {
      bool mine = true;
      each_below<true>(shape.key_words, [&](u32 w) { mine = mine && take_word(words[w], key_of(w)); });
      if (mine) return slot;
    } else {
      u32 w = 0;
      while (w < shape.key_words && take_word(words[w], key_of(w))) ++w;
      if (w == shape.key_words) return slot;
    }
  }
  return no_slot;
}

/// Adds what was seen of rows to a slot.
PENSTOCK_FN inline void add_to_slot(u64* slot, slot_aggregate const& each, accumulator const& more) {
  if (more.count == 0) return;
  if (each.counts != 0) device_ref<u64>(slot[each.counts]).fetch_add(more.count, relaxed);
  u64& word = slot[each.at];
  switch (each.of.what) {
    case aggregate_kind::rows:
    case aggregate_kind::count: break;
    case aggregate_kind::number_sum:
      fetch_add_number(reinterpret_cast<u64>(&word), std::bit_cast<double>(more.low) + std::bit_cast<double>(more.high));
      break;
    case aggregate_kind::integer_sum: {
      const u64 before = device_ref<u64>(word).fetch_add(more.low, relaxed);
      const u64 upper = more.high + (before + more.low < before ? 1 : 0);
      if (upper != 0) device_ref<u64>(slot[each.at + 1]).fetch_add(upper, relaxed);
      break;
    }
    default: add_extreme(word, each.of.what, more);
  }
}

/// What the members of a group do with their rows.
template <thread_group G, class Code = interpreted>
class grouped_rows {
 public:
  PENSTOCK_FN grouped_rows(G const& g, group_slots const& into, u32* errors) : g_(g), into_(into), errors_(errors) {}

  /// Collective.
  template <class Rows, class Registers>
  PENSTOCK_FN void add(Rows const& rows, Registers const& r) {
    if constexpr (alone) {
      for (u32 k = 0; k < rows.count; ++k) fetch_ahead(words(begin_of(r, k)));
    }
    each_below<unrolled>(rows.size(), [&](u32 k) {
      const u64 slot = rows.active[k] != 0 ? slot_of(r, k) : no_slot;
      if constexpr (!alone) {
        const auto peers = g_.match_any(slot);
        if (any(g_.ballot(slot != no_slot && count(peers) > 1))) {
          add_together(r, k, slot, peers);
          return;
        }
      }
      if (slot == no_slot) return;
      accumulator* held = nullptr;
      if constexpr (alone) held = held_of(slot);
      each_aggregate([&](u32 a, slot_aggregate const& each) {
        if (!counts(each, r, k)) return;
        const accumulator more = accumulator_of(each.of.what, r.value[each.of.from][k]);
        held != nullptr ? combine(each.of.what, held[a], more) : add_to_slot(words(slot), each, more);
      });
    });
  }

  /// Adds what is held back.
  PENSTOCK_FN void finish() {
    if constexpr (alone) {
      for (held_slot& each : held_) let_go(each);
    }
  }

 private:
  static constexpr bool unrolled = Code::is_compiled;
  /// What a slot has, of a compiled program constants.
  PENSTOCK_FN decltype(auto) shape() const {
    if constexpr (Code::is_compiled) {
      return (Code::grouping);
    } else {
      return (into_);
    }
  }
  template <class Use>
  PENSTOCK_FORCE_INLINE void each_aggregate(Use const& use) const {
    each_below<unrolled>(shape().count, [&](u32 a) { use(a, shape().list[a]); });
  }

  /// Sums of a slot that a thread by itself holds back, so that threads do not change one slot all the time for the rows of a
  /// key that has many.
  static constexpr bool alone = std::is_same_v<G, lone_thread>;
  static constexpr u32 held_slots = alone ? 64 : 1, most_held = 8;
  struct held_slot {
    u64 slot = no_slot;
    bool holds = false;
    accumulator sums[alone ? most_held : 1];
  };

  /// Of a slot that was the last of its place, too; nullptr: of another.
  PENSTOCK_FN accumulator* held_of(u64 slot) {
    held_slot& held = held_[slot % held_slots];
    if (held.slot != slot || into_.count > most_held) {
      let_go(held);
      held.slot = slot;
      return nullptr;
    }
    if (!held.holds) {
      for (u32 a = 0; a < into_.count; ++a) held.sums[a] = empty_accumulator(into_.list[a].of.what);
      held.holds = true;
    }
    return held.sums;
  }
  PENSTOCK_FN void let_go(held_slot& held) {
    for (u32 a = 0; held.holds && a < into_.count; ++a) add_to_slot(words(held.slot), into_.list[a], held.sums[a]);
    held.holds = false;
  }

  template <class Registers>
  PENSTOCK_FN u64 slot_of(Registers const& r, u32 k) const {
    bool known = true;
    each_below<unrolled>(shape().key_words, [&](u32 w) { known &= r.value[shape().keys[w]][k] != free_word; });
    if (!known) {
      device_ref<u32>(*errors_).fetch_or(bad_group, relaxed);
      return no_slot;
    }
    const u64 slot = find_or_add<unrolled>(into_, shape(), begin_of(r, k), [&](u32 w) { return r.value[shape().keys[w]][k]; });
    if (slot == no_slot) device_ref<u32>(*into_.full).store(1, relaxed);
    return slot;
  }
  template <class Registers>
  PENSTOCK_FN u64 begin_of(Registers const& r, u32 k) const {
    return first_slot_of<unrolled>(into_, shape(), [&](u32 w) { return r.value[shape().keys[w]][k]; });
  }
  template <class Registers>
  PENSTOCK_FN bool counts(slot_aggregate const& each, Registers const& r, u32 k) const {
    return each.of.what == aggregate_kind::rows || r.valid[each.of.from][k] != 0;
  }
  PENSTOCK_FN u64* words(u64 slot) const { return into_.words + slot * shape().stride; }

  /// Rows of members that have one slot are combined before the first of these adds them: keys that many rows have are not
  /// changed by all of them. Collective.
  template <class Registers>
  PENSTOCK_FN void add_together(Registers const& r, u32 k, u64 slot, lane_mask peers) const {
    each_aggregate([&](u32, slot_aggregate const& each) {
      const aggregate_kind what = each.of.what;
      const bool counted = slot != no_slot && counts(each, r, k);
      const lane_mask those = g_.ballot(counted) & peers;
      accumulator mine = counted ? accumulator_of(what, r.value[each.of.from][k]) : empty_accumulator(what);
      if (words_of(what) != 0) mine = combined_with_peers(what, mine, peers);
      mine.count = count(those);
      if (slot != no_slot && g_.rank() == lowest(peers)) add_to_slot(words(slot), each, mine);
    });
  }

  /// Of the members of `peers`, in the lowest of them: each takes in its next, then every other one is done. Collective.
  PENSTOCK_FN accumulator combined_with_peers(aggregate_kind what, accumulator mine, lane_mask peers) const {
    u32 number = count_below(peers, g_.rank());
    lane_mask above = peers & ~((lane_mask{2} << g_.rank()) - 1);
    while (any(g_.ballot(any(above)))) {
      const u32 next = any(above) ? lowest(above) : g_.rank();
      const accumulator other{g_.shfl(mine.low, next), g_.shfl(mine.high, next), 0};
      if (any(above)) combine(what, mine, other);
      above = without(above, g_.ballot((number & 1) != 0));
      number >>= 1;
    }
    return mine;
  }

  G g_;
  group_slots const& into_;
  u32* errors_;
  held_slot held_[held_slots];
};

}  // namespace penstock::columns
