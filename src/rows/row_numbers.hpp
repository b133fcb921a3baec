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

/// Keys and positions to sort by: a row's number, or `rows` of one outside, and where its copy goes, from position `first` on.
/// `others` is added to the keys of those that are not kept, so that they come last.
struct list_rows {
  row_numbers numbers;
  u64 first, count;
  u32* keys;
  u32* positions;
  kept_rows kept{};
  u32 others = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      for (u64 k = item * items_per_group + index_in(g); k < (item + 1) * items_per_group && k < count; k += size(g)) {
        const u64 row = numbers.at(first + k);
        const bool is_kept = others != 0 && row != row_numbers::none && kept.place_of(row) != kept_rows::none;
        keys[k] = static_cast<u32>(row != row_numbers::none ? row : numbers.rows) + (is_kept ? 0 : others);
        positions[k] = static_cast<u32>(k);
      }
    }
  }

  static constexpr u64 items_per_group = 32;
};

/// Which rows a pass over a list takes, where those that are kept have a pass of their own.
struct row_pass {
  enum class kind : u32 { all, kept, others };
  kind of = kind::all;
  kept_rows kept;

  /// A row as this pass reads it: those that are kept by their place among these; `none` for one that is not its own.
  PENSTOCK_FN u64 own(u64 row) const {
    if (of == kind::all || row == row_numbers::none) return row;
    const u64 place = kept.place_of(row);
    if (of == kind::kept) return place;
    return place == kept_rows::none ? row : row_numbers::none;
  }
};
static_assert(row_numbers::none == kept_rows::none);

/// Rows in the order in which they were asked for.
struct rows_as_asked {
  row_numbers numbers;
  row_pass pass{};

  /// One of the list, and the position where it goes.
  PENSTOCK_FN u64 take(u64 k, u64& position) const {
    position = k;
    return k < numbers.list.count ? pass.own(numbers.at(k)) : row_numbers::none;
  }
};

/// Rows about in the order of their numbers: those of a page, and the copies of one row, are neighbours. Each copy is read by
/// itself, the later ones from a GPU's L2: of a row that half of a list names, one group would make all copies otherwise.
struct rows_by_number {
  u32 const* keys;
  u32 const* positions;
  u64 count, rows;
  row_pass pass{};
  u32 others = 0;  ///< as list_rows

  PENSTOCK_FN u64 take(u64 k, u64& position) const {
    const bool there = k < count;
    const u32 key = there ? keys[k] : 0;
    const u64 row = there ? key - (key < others ? 0 : others) : rows;
    position = there ? positions[k] : 0;
    return row < rows ? pass.own(row) : row_numbers::none;
  }
};

}  // namespace penstock::rows
