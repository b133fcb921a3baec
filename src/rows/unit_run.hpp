// A run of units behind a cache, by blocks of its lines.
#pragma once

#include "penstock/array/array_view.hpp"

namespace penstock::rows {

/// A run of units behind a cache, in blocks that begin where lines do: of each the lines are asked for together.
template <class Unit>
struct unit_run {
  array_view<Unit> source;
  u64 units;
  u64 line_units;
  u64 lead;  ///< units of the first line before the run

  static constexpr u64 lines_each = 32;

  PENSTOCK_FN u64 blocks() const { return (lead + units + block_units() - 1) / block_units(); }
  PENSTOCK_FN u64 begin(u64 block) const { return block == 0 ? 0 : block * block_units() - lead; }
  PENSTOCK_FN u64 end(u64 block) const {
    const u64 next = (block + 1) * block_units() - lead;
    return next < units ? next : units;
  }

 private:
  PENSTOCK_FN u64 block_units() const { return lines_each * line_units; }
};

}  // namespace penstock::rows
