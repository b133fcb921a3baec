// Kernels over rows: gather, scatter, prefetch, and what comes before them.
#pragma once

#include "penstock/array/row_copy.hpp"
#include "penstock/array/writable_view.hpp"
#include "penstock/host/launch.hpp"
#include "row_job.hpp"

namespace penstock::rows {

/// A row of the array for an index of the caller's, negative ones from the end on; `none` for what lies outside.
struct row_numbers {
  row_list list;
  u64 rows = 0;
  row_report* report = nullptr;

  static constexpr u64 none = ~0ull;

  PENSTOCK_FN u64 at(u64 k) const {
    const long long asked =
        list.item_bytes == 4 ? static_cast<int const*>(list.data)[k] : static_cast<long long const*>(list.data)[k];
    const u64 row = static_cast<u64>(asked < 0 ? asked + static_cast<long long>(rows) : asked);
    if (row < rows) return row;
    lower_to(report->first_bad, k);
    return none;
  }
};

/// Keys and positions to sort by: a row's number and where its copy goes, from position `first` on. Rows outside come last.
struct list_rows {
  row_numbers numbers;
  u64 first, count;
  u32* keys;
  u32* positions;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      for (u64 k = item * items_per_group + index_in(g); k < (item + 1) * items_per_group && k < count; k += size(g)) {
        const u64 row = numbers.at(first + k);
        keys[k] = static_cast<u32>(row != row_numbers::none ? row : numbers.rows);
        positions[k] = static_cast<u32>(k);
      }
    }
  }

  static constexpr u64 items_per_group = 32;
};

/// The array's rows in memory that the kernel reaches, in the order in which they were asked for.
template <class Unit>
struct gather_resident {
  row_numbers numbers;
  u64 source, row_bytes, out;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      const u64 to = out + k * row_bytes;
      copy_row<Unit>(g, source + row * row_bytes, row_bytes, 1, [to](u32) { return to; });
    }
  }
};

/// The same in order of address: what is asked for more than once is read once for every `most_copies` of it.
template <class Unit>
struct gather_sorted {
  u32 const* keys;
  u32 const* positions;
  u64 count, rows;
  u64 source, row_bytes, out;

  static constexpr u32 most_copies = 32;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = keys[k];
      if (row >= rows || (k % most_copies != 0 && keys[k - 1] == row)) continue;
      u32 copies = 1;
      while ((k + copies) % most_copies != 0 && k + copies < count && keys[k + copies] == row) ++copies;
      copy_row<Unit>(g, source + row * row_bytes, row_bytes, copies,
                     [&](u32 c) { return out + u64{positions[k + c]} * row_bytes; });
    }
  }
};

/// Through a cache.
template <class Unit>
struct gather_cached {
  array_view<Unit> source;
  row_numbers numbers;
  u64 row_units;
  Unit* out;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      Unit* const to = out + k * row_units;
      const u64 first = row * row_units;
      source.read_span(g, first, row_units, [&](u64 i, Unit v) { to[i - first] = v; });
    }
  }
};

/// The same in the order of the rows, so that those of one line come one after another.
template <class Unit>
struct gather_cached_sorted {
  array_view<Unit> source;
  u32 const* keys;
  u32 const* positions;
  u64 rows;
  u64 row_units;
  Unit* out;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      if (keys[k] >= rows) continue;
      Unit* const to = out + positions[k] * row_units;
      const u64 first = u64{keys[k]} * row_units;
      source.read_span(g, first, row_units, [&](u64 i, Unit v) { to[i - first] = v; });
    }
  }
};

/// Asks for the lines of rows and does not wait.
template <class Unit>
struct prefetch_rows {
  array_view<Unit> source;
  row_numbers numbers;
  u64 row_units;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row != row_numbers::none) source.ask_span(g, row * row_units, row_units);
    }
  }
};

template <class Unit>
struct scatter_resident {
  row_numbers numbers;
  u64 target, row_bytes, values;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      const u64 to = target + row * row_bytes;
      copy_row<Unit>(g, values + k * row_bytes, row_bytes, 1, [to](u32) { return to; });
    }
  }
};

template <class Unit>
struct scatter_cached {
  writable_view<Unit> target;
  row_numbers numbers;
  u64 row_units;
  Unit const* values;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      const u64 first = row * row_units;
      Unit const* const from = values + k * row_units;
      const status outcome = target.write_span(g, first, row_units, [&](u64 i) { return from[i - first]; });
      if (!outcome.ok() && is_leader(g)) device_ref<u32>(numbers.report->failure).store(pack(outcome), relaxed);
    }
  }
};

/// Adds values to elements of T, wherever they lie; each sum is one atomic.
template <class T>
struct add_rows {
  writable_view<T> target;
  row_numbers numbers;
  u64 row_elements;
  T const* values;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      for (u64 at = 0; at < row_elements; at += size(g)) {
        const u64 e = at + index_in(g);
        const bool mine = e < row_elements;
        target.fetch_add(g, mine, row * row_elements + (mine ? e : 0), mine ? values[k * row_elements + e] : T{});
      }
    }
  }
};

}  // namespace penstock::rows
