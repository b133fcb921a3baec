// Kernels that change rows: scatter and add.
#pragma once

#include "penstock/array/row_copy.hpp"
#include "penstock/array/writable_view.hpp"
#include "penstock/executor/launch.hpp"
#include "row_numbers.hpp"
#include "unit_run.hpp"

namespace penstock::rows {

template <class Unit>
struct scatter_resident {
  row_numbers numbers;
  u64 target, row_bytes, values;
  u64 pitch = row_bytes;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      const u64 to = target + row * pitch;
      copy_row<Unit>(g, values + k * row_bytes, to, row_bytes);
    }
  }
};

/// Stores a run behind a cache; lines that it covers are not read.
template <class Unit>
struct scatter_run_cached {
  unit_run<Unit> run;
  writable_view<Unit> target;
  Unit const* values;
  row_report* report;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 block = range.first; block < range.last; block += range.step) {
      const u64 begin = run.begin(block);
      Unit const* const from = values;
      const status outcome = target.write_span(g, begin, run.end(block) - begin, [from](u64 i) { return from[i]; });
      if (!outcome.ok()) device_ref<u32>(report->failure).store(pack(outcome), relaxed);
    }
  }
};

/// Rows to change, of which each lane has one: their numbers, and their lines, are looked up side by side.
struct rows_at_once {
  u64 first;  ///< in the list, of the group's lane 0
  u64 step;   ///< to that of the next lane
  u64 row;    ///< of this lane

  PENSTOCK_FN bool wanted() const { return row != row_numbers::none; }
  /// In the list, of the lane with index k.
  PENSTOCK_FN u64 position(u32 k) const { return first + k * step; }
};

/// Calls change(rows_at_once) for the rows of a group's part of a list, and tells the report of what failed.
template <thread_group G, class Change>
PENSTOCK_FN void change_rows(G const& g, grid_range range, row_numbers const& numbers, Change const& change) {
  for (u64 first = range.first; first < range.last; first += size(g) * range.step) {
    const u64 mine = first + index_in(g) * range.step;
    const u64 row = mine < range.last ? numbers.at(mine) : row_numbers::none;
    const status outcome = change(rows_at_once{first, range.step, row});
    if (!outcome.ok()) device_ref<u32>(numbers.report->failure).store(pack(outcome), relaxed);
  }
}

template <class Unit>
struct scatter_cached {
  writable_view<Unit> target;
  row_numbers numbers;
  u64 row_units;
  Unit const* values;
  u64 pitch_units = row_units;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    change_rows(g, range, numbers, [&](rows_at_once const& rows) {
      const u64 first = rows.wanted() ? rows.row * pitch_units : 0;
      return target.write_spans(g, rows.wanted(), first, row_units,
                                [&](u32 k, u64 j) { return values[rows.position(k) * row_units + j]; });
    });
  }
};

/// Adds values to elements of T, wherever they lie.
template <class T>
struct add_rows {
  writable_view<T> target;
  row_numbers numbers;
  u64 row_elements;
  T const* values;
  u64 pitch_elements = row_elements;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    change_rows(g, range, numbers, [&](rows_at_once const& rows) {
      const u64 first = rows.wanted() ? rows.row * pitch_elements : 0;
      return target.add_spans(g, rows.wanted(), first, row_elements,
                              [&](u32 k, u64 j) { return values[rows.position(k) * row_elements + j]; });
    });
  }
};

}  // namespace penstock::rows
