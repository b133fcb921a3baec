// How rows of host memory are gathered by a GPU: as asked, sorted, or shared with threads of the CPU.
#include "row_array_state.hpp"
#include "row_helpers.hpp"
#include "shared_gather.hpp"

#include <algorithm>

namespace penstock {
namespace {

// Rows of host memory in the order that they were asked for in cost the GPU a look at a page table each, once there are more
// pages than its TLB reaches, and the link one transfer for each copy. A sort takes some 50 us: few rows do not pay for it
// unless they are long, nor do rows that are more than a few packets each.
constexpr u64 least_sorted_rows = 1 << 16, least_sorted_long_rows = 1 << 14, least_long_row = 2048, most_sorted_row = 16384;

// What a GPU reads in place of a sorted list, as measured (docs/ARRAYS.md): so many rows a second that are far from each other,
// and of those that share what its tables of addresses are cached by, so many bytes of the array are passed a second. Threads
// of the CPU share what takes more than a millisecond, unless that is near what the link bears.
constexpr double rows_apart_per_second = 32e6, bytes_passed_per_second = 2e12;
constexpr u64 least_shared_bytes = 16ull << 20;

}  // namespace

double rows::read_per_second(double bytes_between, u64 row_bytes) {
  return std::max(rows_apart_per_second, bytes_passed_per_second / bytes_between) * static_cast<double>(row_bytes);
}

bool row_array::state::sorts(row_list const& list, rows::row_place const& from, gather_order order) const {
  if (list.grid.levels != 0) return false;  // in order as they are
  if (device == nullptr || order == gather_order::as_asked || order == gather_order::copy_engine) return false;
  if (from.rows >= 0xffffffffu) return false;
  if (order == gather_order::by_address) return true;
  if (cache != nullptr) return list.count >= least_sorted_long_rows && from.row_bytes < options.cache.line_bytes;
  if (options.where != placement::host || from.row_bytes > most_sorted_row) return false;
  return list.count >= (from.row_bytes >= least_long_row ? least_sorted_long_rows : least_sorted_rows);
}

bool row_array::state::shares(row_list const& list, rows::row_place const& from, row_call_options const& how) const {
  const u64 bytes = list.count * from.row_bytes;
  if (options.gather_threads == 0 || options.where != placement::host || bytes < least_shared_bytes) return false;
  if (!rows::may_be_shared(shape)) return false;
  if (device->is_captured(how.stream)) return false;
  const double between = static_cast<double>(from.rows * from.pitch) / static_cast<double>(list.count);
  return rows::read_per_second(between, from.row_bytes) < rows::enough_per_second;
}

}  // namespace penstock
