// Rows that a list names: their numbers, in its order or sorted.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/executor/launch.hpp"
#include "row_job.hpp"

namespace penstock::rows {

/// A row of the array for an index of the caller's, negative ones from the end on if the list says so; `none` for what lies
/// outside.
struct row_numbers {
  row_list list;
  u64 rows = 0;
  row_report* report = nullptr;

  static constexpr u64 none = ~0ull;

  PENSTOCK_FN u64 at(u64 k) const {
    if (list.grid.levels != 0) return in_grid(k);
    const long long asked =
        list.item_bytes == 4 ? static_cast<int const*>(list.data)[k] : static_cast<long long const*>(list.data)[k];
    const bool back = asked < 0 && list.negative_indices;
    const u64 row = static_cast<u64>(asked) + (back ? rows : 0);
    if (row < rows) return row;
    lower_to(report->first_bad, k);
    return none;
  }

 private:
  PENSTOCK_FN u64 in_grid(u64 k) const {
    row_grid const& grid = list.grid;
    u64 row = grid.first;
    for (u32 l = grid.levels - 1; l != 0; --l) {
      row += k % grid.level[l].count * static_cast<u64>(grid.level[l].step);
      k /= grid.level[l].count;
    }
    return row + k * static_cast<u64>(grid.level[0].step);
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

/// A row, and how often the list names it from `first` on without another between.
struct row_run {
  u64 row;
  u64 first;
  u32 copies;
};

/// Rows in the order in which they were asked for.
struct rows_as_asked {
  row_numbers numbers;

  /// One of the list, and the position where it goes.
  PENSTOCK_FN u64 take(u64 k, u64& position) const {
    position = k;
    return k < numbers.list.count ? numbers.at(k) : row_numbers::none;
  }
  PENSTOCK_FN row_run take_run(u64 k) const { return {numbers.at(k), k, 1}; }
  PENSTOCK_FN u64 position(u64 k) const { return k; }
};

/// Rows in the order of their numbers.
struct rows_by_number {
  u32 const* keys;
  u32 const* positions;
  u64 count, rows;

  static constexpr u32 most_copies = 32;

  PENSTOCK_FN u64 take(u64 k, u64& position) const {
    const bool there = k < count;
    const u64 row = there ? keys[k] : rows;
    position = there ? positions[k] : 0;
    return row < rows ? row : row_numbers::none;
  }
  /// Of those that are named more than once, every `most_copies` has a run; the others have none.
  PENSTOCK_FN row_run take_run(u64 k) const {
    const u32 row = keys[k];
    if (row >= rows || (k % most_copies != 0 && keys[k - 1] == row)) return {row_numbers::none, k, 0};
    u32 copies = 1;
    while ((k + copies) % most_copies != 0 && k + copies < count && keys[k + copies] == row) ++copies;
    return {row, k, copies};
  }
  PENSTOCK_FN u64 position(u64 k) const { return positions[k]; }
};

}  // namespace penstock::rows
