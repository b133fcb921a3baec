// Rows of a table that another is joined with, put where the other's rows find them: by their keys, or in slots of a hash table
// (key_slots.hpp). Keys are int64.
#pragma once

#include "libs/columns/key_slots.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/executor/grid.hpp"
#include "penstock/group/thread_group.hpp"

#include <limits>

namespace penstock::columns {

inline constexpr u64 rows_of_join_item = 4096;
inline constexpr u64 no_place = ~u64{0};

/// Lowers a word to a value, if it is greater.
PENSTOCK_FN inline void lower_to(u64& word, u64 value) {
  device_ref<u64> at(word);
  for (u64 seen = at.load(relaxed); value < seen && !at.compare_exchange_weak(seen, value, relaxed, relaxed);) {}
}

/// Calls use(row) for the rows of a group's items.
template <class Group, class Use>
PENSTOCK_FN inline void each_row(Group const& g, grid_range range, u64 rows, Use const& use) {
  for (u64 item = range.first; item < range.last; item += range.step) {
    const u64 begin = item * rows_of_join_item, end = begin + rows_of_join_item < rows ? begin + rows_of_join_item : rows;
    for (u64 row = begin + index_in(g); row < end; row += size(g)) use(row);
  }
}

struct fill_words {
  u64* to;
  u64 count, value;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) { to[k] = value; });
  }
};

/// Keys and whether rows have one.
struct join_keys {
  u64 const* keys = nullptr;
  u8 const* valid = nullptr;  ///< nullptr: find_extremes takes all for valid
  u64 rows = 0;
};

/// Signed numbers in the order of unsigned ones.
PENSTOCK_FN constexpr u64 ordered_key(u64 key) { return key ^ u64{1} << 63; }

/// The least and the greatest key, ordered; as the complement the greatest, so that both are lowered.
struct find_extremes {
  join_keys of;
  u64* least;
  u64* greatest;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    u64 low = ~u64{0}, high = ~u64{0};
    each_row(g, range, of.rows, [&](u64 row) {
      if (of.valid != nullptr && of.valid[row] == 0) return;
      const u64 key = ordered_key(of.keys[row]);
      low = key < low ? key : low;
      high = ~key < high ? ~key : high;
    });
    if (low != ~u64{0} || high != ~u64{0}) {
      lower_to(*least, low);
      lower_to(*greatest, high);
    }
  }
};

/// Each row's place; `again` becomes the least row, but one, of those whose key stands more than once, about.
struct place_by_value {
  join_keys of;
  u64 low;
  u64* held;  ///< a bit for each place, 0 before
  u64* place_of;
  u64* again;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, of.rows, [&](u64 row) {
      const u64 place = of.valid[row] != 0 ? of.keys[row] - low : no_place;
      place_of[row] = place;
      if (place == no_place) return;
      const u64 bit = u64{1} << place % 64;
      if ((device_ref<u64>(held[place / 64]).fetch_or(bit, relaxed) & bit) != 0) lower_to(*again, row);
    });
  }
};

struct place_in_slots {
  join_keys of;
  u64 slots;
  u64* owners;  ///< of each slot the number of its row + 1; 0 before
  u64* place_of;
  u64* again;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, of.rows, [&](u64 row) {
      place_of[row] = no_place;
      if (of.valid[row] == 0) return;
      const u64 key = of.keys[row];
      for (u64 slot = first_slot(key, slots);; slot = (slot + 1) & (slots - 1)) {  // half of them stay free
        u64 owner = 0;
        const bool taken = device_ref<u64>(owners[slot]).compare_exchange_strong(owner, row + 1, relaxed, relaxed);
        if (!taken && of.keys[owner - 1] != key) continue;
        if (!taken) lower_to(*again, row);
        place_of[row] = slot;
        return;
      }
    });
  }
};

/// A column's values to the rows' places. Of rows that have one place any.
struct scatter_values {
  u64 const* values;
  u8 const* valid;
  u64 const* place_of;
  u64 rows;
  u64* to;
  u8* to_valid;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, rows, [&](u64 row) {
      const u64 place = place_of[row];
      if (place == no_place) return;
      device_ref<u64>(to[place]).store(values[row], relaxed);
      device_ref<u8>(to_valid[place]).store(valid[row], relaxed);
    });
  }
};

}  // namespace penstock::columns
