// The lists of neighbours of one edge type as kernels read them, wherever they lie.
#pragma once

#include "penstock/array/array_view.hpp"
#include "penstock/kernels/descriptor.hpp"

#include <bit>
#include <cmath>

namespace penstock::sampling {

using kernels::array_descriptor;

template <class T>
PENSTOCK_FN T element_of(array_descriptor const& array, u64 i) {
  if (array.memory != nullptr) return static_cast<T const*>(array.memory)[i];
  line_reader const& reader = *reinterpret_cast<line_reader const*>(&array.reader[0]);
  return std::bit_cast<T>(reader.read<piece_of<sizeof(T)>>(array.origin + i * sizeof(T)));
}

/// Integers of 4 or 8 bytes, none of them negative. An array of 0 bytes is none.
struct integers {
  array_descriptor array{};
  u32 width = 8;

  PENSTOCK_FN bool are_there() const { return array.bytes != 0; }
  PENSTOCK_FN u64 size() const { return array.bytes / width; }
  PENSTOCK_FN u64 operator[](u64 i) const { return width == 4 ? element_of<u32>(array, i) : element_of<u64>(array, i); }
  PENSTOCK_FN std::int64_t signed_at(u64 i) const {
    return width == 4 ? static_cast<std::int32_t>(element_of<u32>(array, i))
                      : static_cast<std::int64_t>(element_of<u64>(array, i));
  }
};

/// Numbers of 4 (float) or 8 bytes (double).
struct reals {
  array_descriptor array{};
  u32 width = 4;

  PENSTOCK_FN bool are_there() const { return array.bytes != 0; }
  PENSTOCK_FN u64 size() const { return array.bytes / width; }
  PENSTOCK_FN double operator[](u64 i) const {
    return width == 4 ? static_cast<double>(element_of<float>(array, i)) : element_of<double>(array, i);
  }
};

/// What a graph that is damaged, or a caller that is wrong, makes a kernel report: the least word wins.
enum class problem : u64 { seed = 1, list = 2, neighbor = 3, weight = 4 };
inline constexpr u64 no_problem = ~u64{0}, problem_shift = 56;
PENSTOCK_FN inline void report_problem(u64* word, problem what, u64 where) {
  lower_to(*word, static_cast<u64>(what) << problem_shift | (where & ((u64{1} << problem_shift) - 1)));
}

struct edge_list {
  u64 first = 0;
  u64 length = 0;
};

struct edge_lists {
  integers pointers;                ///< [targets + 1]
  integers neighbors;               ///< [edges]
  reals weights;                    ///< [edges], or none
  integers edge_times, node_times;  ///< [edges], or of the neighbours' type [nodes], or none
  u64 targets = 0, sources = 0;     ///< nodes of the type that has lists, and of its neighbours'

  PENSTOCK_FN edge_list list_of(u64 node, u64* found_problem) const {
    if (node >= targets) return {};
    const u64 first = pointers[node], end = pointers[node + 1];
    if (first > end || end > neighbors.size()) {
      report_problem(found_problem, problem::list, node);
      return {};
    }
    return {first, end - first};
  }
  PENSTOCK_FN bool has_times() const { return edge_times.are_there() || node_times.are_there(); }
  PENSTOCK_FN std::int64_t time_of(u64 edge) const {
    if (edge_times.are_there()) return edge_times.signed_at(edge);
    const u64 node = neighbors[edge];
    return node < sources ? node_times.signed_at(node) : std::int64_t{-1} << 63;
  }
};

}  // namespace penstock::sampling
