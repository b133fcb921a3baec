// Groups by any keys: rows to their slots (group_slots.hpp), and the groups that are found in the order of their keys.
#pragma once

#include "libs/columns/group_slots.hpp"
#include "libs/columns/join_bodies.hpp"
#include "libs/columns/zone_walker.hpp"

namespace penstock::columns {

inline constexpr u32 max_slot_words = max_key_words + 3 * max_aggregates;

/// What free slots have.
struct clear_slots {
  u64* words;
  u64 count;
  u32 stride;
  u64 slot[max_slot_words];

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) { words[k] = slot[k % stride]; });
  }
};

/// Adds the rows that meet the condition to the slots of their keys. All stop soon after one finds the table full.
struct group_zones {
  query_view query;
  group_slots into;
  u64* met;  ///< rows

  template <class Group, class Code = interpreted>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    zone_walker<Group, Code> walker(g, query);
    grouped_rows<Group, Code> groups(g, into, query.with.errors);
    u64 rows = 0;
    for (u64 z = range.first; z < range.last; z += range.step) {
      const bool full = device_ref<u32>(*into.full).load(relaxed) != 0;
      if (any(g.ballot(full))) break;
      const u32 zone = query.zones != nullptr ? query.zones[z] : static_cast<u32>(z);
      rows += walker.walk(zone, [&](auto const& batch, auto const& r) { groups.add(batch, r); });
    }
    groups.finish();
    if (is_leader(g)) device_ref<u64>(*met).fetch_add(rows, relaxed);
  }
};

/// What a word of a group's slot must be to be in a result: from `low` to `high`, of numbers sortable.
struct slot_range {
  u32 word = 0;
  u32 upper = 0;   ///< of an integer sum, the word that follows; 0: of none. A sum beyond 64 bits is kept: it is an error
  u32 number = 0;  ///< whether it is the bits of a floating-point number
  std::int64_t low = 0, high = 0;

  PENSTOCK_FN bool keeps(u64 const* slot) const {
    const u64 value = slot[word];
    if (upper != 0 && slot[upper] != sign_of(value)) return true;
    const std::int64_t key = number != 0 ? sortable(std::bit_cast<double>(value)) : static_cast<std::int64_t>(value);
    return key >= low && key <= high;
  }
};
inline constexpr u32 max_slot_ranges = 8;

/// The slots that have a group that is wanted: how many there are in each run of rows_of_join_item, and with `to` these, a word
/// a row.
struct find_groups {
  group_slots of;
  u64* counts;        ///< of each run; with `to` how many are before it
  u64* to = nullptr;  ///< [stride][groups]
  u64 groups = 0;
  slot_range ranges[max_slot_ranges] = {};
  u32 range_count = 0;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 begin = item * rows_of_join_item;
      u64 found = 0;
      for (u64 n = 0; n < rows_of_join_item; n += size(g)) {
        const u64 slot = begin + n + index_in(g);
        u64 const* const words = of.words + slot * of.stride;
        bool used = slot < of.slots && words[of.key_words - 1] != free_word;
        for (u32 k = 0; used && k < range_count; ++k) used = ranges[k].keeps(words);
        const auto those = g.ballot(used);
        if (used && to != nullptr) {
          const u64 at = counts[item] + found + count_below(those, g.rank());
          for (u32 w = 0; w < of.stride; ++w) to[w * groups + at] = words[w];
        }
        found += count(those);
      }
      if (to == nullptr && is_leader(g)) counts[item] = found;
    }
  }
};

/// Keys with the numbers of their groups.
struct sort_rows {
  u64* keys = nullptr;
  u32* numbers = nullptr;
};

/// A word of the keys of groups, as an offset from the least: number k is `from.numbers[k]`'s.
struct take_sort_keys {
  u64 const* word;
  u64 groups, least;  ///< ordered (join_bodies.hpp)
  sort_rows rows;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, groups, [&](u64 k) { rows.keys[k] = ordered_key(word[rows.numbers[k]]) - least; });
  }
};

struct number_rows {
  u32* numbers;
  u64 count;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) { numbers[k] = static_cast<u32>(k); });
  }
};

/// Values of groups in another order.
struct take_in_order {
  u64 const* from;
  u32 const* numbers;
  u64 count;
  u64* to;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) { to[k] = from[numbers[k]]; });
  }
};

/// A pass of a radix sort that keeps the order of equal digits (Knuth, TAOCP 3, 5.2.5, Algorithm R): with `to` without keys
/// it counts the digits of each run, else it puts rows where the counts before them say.
struct sort_by_digit {
  static constexpr u64 rows_per_item = 16384;
  static constexpr u32 digits = 256;
  sort_rows from, to;
  u64 rows, items;
  u32 shift;
  u32* at;  ///< [digits][items]; 0 before it counts

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 begin = item * rows_per_item, end = begin + rows_per_item < rows ? begin + rows_per_item : rows;
      for (u64 k = begin; k < end; k += size(g)) take(g, item, k + index_in(g), end);
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN void take(Group const& g, u64 item, u64 row, u64 end) const {
    const bool there = row < end;
    const u64 key = there ? from.keys[row] : 0, digit = there ? key >> shift & (digits - 1) : digits;
    const auto peers = g.match_any(digit);
    u32* const next = at + digit * items + item;
    const u32 place = there ? *next : 0;
    g.sync();  // all have read what the lowest of them changes
    if (there && to.keys != nullptr) {
      const u32 mine = place + count_below(peers, g.rank());
      to.keys[mine] = key;
      to.numbers[mine] = from.numbers[row];
    }
    if (there && g.rank() == lowest(peers)) *next = place + count(peers);
    g.sync();
  }
};

}  // namespace penstock::columns
