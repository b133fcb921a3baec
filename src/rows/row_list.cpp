// What a list of rows takes of an array: checked before a kernel runs, for none checks a grid or a part again.
#include "penstock/host/error.hpp"
#include "row_job.hpp"

#include <string>

namespace penstock {
namespace {

constexpr u64 most_rows = u64{1} << 62;

/// The lowest and the highest row of a grid that is not empty. False: beyond what an address counts.
bool reach(row_grid const& grid, u64& lowest, u64& highest) {
  lowest = highest = grid.first;
  for (u32 l = 0; l < grid.levels; ++l) {
    const bool back = grid.level[l].step < 0;
    const u64 step = back ? -static_cast<u64>(grid.level[l].step) : static_cast<u64>(grid.level[l].step);
    const u64 steps = grid.level[l].count - 1;
    if (steps != 0 && step > most_rows / steps) return false;
    if (back && step * steps > lowest) return false;
    (back ? lowest -= step* steps : highest += step * steps);
    if (highest > most_rows) return false;
  }
  return true;
}

}  // namespace

row_list row_list::over(u64 first, std::span<row_grid::loop const> loops, row_part const& part) {
  if (loops.empty() || loops.size() > row_grid::max_levels) {
    throw_bad_input("take", "rows", "a grid of " + std::to_string(loops.size()) + " loops: give one to four");
  }
  row_list list;
  list.part = part;
  list.grid.first = first;
  list.count = 1;
  for (row_grid::loop const& each : loops) {
    list.grid.level[list.grid.levels++] = each;
    if (each.count != 0 && list.count > most_rows / each.count) throw_bad_input("take", "rows", "a grid of too many of them");
    list.count *= each.count;
  }
  return list;
}

row_list row_list::range(u64 first, std::int64_t step, u64 count) {
  const row_grid::loop loop{step, count};
  return over(first, {&loop, 1});
}

namespace rows {

row_place row_place::seen_by(row_list const& list, char const* operation) const {
  const auto check = [&](bool fits) {
    if (!fits) throw_bad_input(operation, "rows", "they reach beyond the array: give rows, and parts of rows, that it has");
  };
  row_place seen = *this;
  if (list.count == 0) return seen;
  row_part const& part = list.part;
  const bool whole = part.pitch == 0 || (part.pitch == pitch && part.offset == 0 && part.bytes == row_bytes);
  if (list.grid.levels != 0 || !whole) seen.kept = {};  // which are whole rows, by a list
  if (!whole) {
    check(part.bytes != 0 && part.offset <= bytes && part.bytes <= bytes - part.offset);
    seen.bytes = bytes - part.offset;
    seen.rows = (seen.bytes - part.bytes) / part.pitch + 1;
    seen.row_bytes = part.bytes;
    seen.pitch = part.pitch;
    if (address != 0) seen.address += part.offset;
    seen.origin += part.offset;
  }
  u64 lowest = 0, highest = 0;
  if (list.grid.levels != 0) check(reach(list.grid, lowest, highest) && highest < seen.rows);
  return seen;
}

bool is_run(row_list const& list, row_place const& place) {
  row_grid const& grid = list.grid;
  if (grid.levels == 0) return false;
  if (list.count == 1) return true;
  return grid.levels == 1 && grid.level[0].step > 0 && static_cast<u64>(grid.level[0].step) * place.pitch == place.row_bytes;
}

}  // namespace rows
}  // namespace penstock
