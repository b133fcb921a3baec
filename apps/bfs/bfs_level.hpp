// One level of a level-synchronous breadth-first search with a frontier: a group per vertex, its lanes over the vertex's edges,
// aligned to memory lines (EMOGI's merged and aligned access).
#pragma once

#include "penstock/array/array_view.hpp"
#include "penstock/host/launch.hpp"

namespace penstock::apps {

/// What the kernels share; all in the executor's local memory.
template <class Id>
struct bfs_data {
  u64 const* offsets = nullptr;  ///< [vertices + 1]
  Id* parents = nullptr;         ///< [vertices]; -1: not reached. Set once, by compare-and-swap
  Id* frontier = nullptr;        ///< [vertices] of this level
  Id* next = nullptr;            ///< [vertices] of the next
  u64* next_count = nullptr;
  u64* traversed = nullptr;  ///< edges looked at
  u64* bad_edge = nullptr;   ///< 1 + position of an edge that leads out of the graph, 0 if none was met
  u64 vertices = 0;
};

/// An item is a run of `run_vertices` consecutive vertices of the frontier: they lie near each other on storage, so one group
/// takes them, and asks for the first lines of a whole run at once, one run ahead.
template <class Id>
struct bfs_level {
  array_view<Id> edges;
  bfs_data<Id> data;
  u64 frontier_size = 0;
  u32 run_vertices = 1;
  u32 lines_ahead = 0;  ///< of a long list, one window

  PENSTOCK_FN u64 runs() const { return ceil_div(frontier_size, run_vertices); }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    array_ref<Id> neighbours(edges);
    u64 traversed = 0;
    look_ahead(g, range.first);
    for (u64 run = range.first; run < range.last; run += range.step) {
      if (run + range.step < range.last) look_ahead(g, run + range.step);
      const u64 first = run * run_vertices;
      const u64 last = first + run_vertices < frontier_size ? first + run_vertices : frontier_size;
      for (u64 at = first; at < last; ++at) {
        const u64 v = static_cast<u64>(data.frontier[at]);
        const u64 begin = data.offsets[v];
        const u64 end = data.offsets[v + 1];
        visit_list(g, v, begin, end, neighbours);
        traversed += end - begin;
      }
    }
    if (is_leader(g) && traversed != 0) device_ref<u64>(*data.traversed).fetch_add(traversed, relaxed);
  }

 private:
  // Every lane asks for another vertex's first line.
  template <thread_group G>
  PENSTOCK_FN void look_ahead(G const& g, u64 run) const {
    if (edges.is_resident()) return;
    for (u64 k = 0; k < run_vertices; k += size(g)) {
      const u64 at = run * run_vertices + k + index_in(g);
      const bool mine = k + index_in(g) < run_vertices && at < frontier_size;
      const u64 v = mine ? static_cast<u64>(data.frontier[at]) : 0;
      const u64 begin = data.offsets[v];
      edges.prefetch(g, mine && begin < data.offsets[v + 1], begin);
    }
  }

  template <thread_group G>
  PENSTOCK_FN void visit_list(G const& g, u64 v, u64 begin, u64 end, array_ref<Id>& neighbours) const {
    const u32 width = size(g);
    const u64 per_line = edges.is_resident() ? 0 : (1ull << edges.reader().line_shift) / sizeof(Id);
    // A long list is asked for in windows of lines, the next one when half of the last is still to come.
    u64 asked = begin + per_line;
    for (u64 first = begin - begin % width; first < end; first += width) {
      if (per_line != 0 && asked < end && first + lines_ahead * per_line / 2 >= asked) {
        for (u64 k = 0; k < lines_ahead; k += width) {
          const u64 line = k + index_in(g);
          const u64 position = asked + line * per_line;
          const bool mine = line < lines_ahead && position < end;
          edges.prefetch(g, mine, mine ? position : begin);
        }
        asked += lines_ahead * per_line;
      }
      const u64 e = first + index_in(g);
      const bool mine = e >= begin && e < end;
      const Id to = neighbours.read(g, mine, mine ? e : begin);
      if (mine) visit(v, e, to);
    }
  }

  PENSTOCK_FN void visit(u64 v, u64 position, Id to) const {
    const u64 u = static_cast<u64>(to);
    if (u >= data.vertices) {
      device_ref<u64>(*data.bad_edge).store(position + 1, relaxed);
      return;
    }
    device_ref<Id> parent(data.parents[u]);
    Id unset = -1;
    if (parent.load(relaxed) != unset || !parent.compare_exchange_strong(unset, static_cast<Id>(v), relaxed, relaxed)) return;
    data.next[device_ref<u64>(*data.next_count).fetch_add(1, relaxed)] = to;
  }
};

/// Lanes of a group on CUDA.
inline constexpr u32 bfs_group_width = 32;

// One per executor, in the translation unit that can compile it. `sort_frontier` makes the next level's frontier this level's,
// in the order of vertices, so that lists which share a line are read together: without it a line is fetched once for each of
// them. `scratch` is the executor's own, kept between levels.
template <class Id>
void launch_level_cpu(executor& on, bfs_level<Id> const& level);
template <class Id>
void launch_level_cuda(executor& on, bfs_level<Id> const& level, u64 most_groups);
template <class Id>
void sort_frontier_cpu(bfs_data<Id>& data, u64 count);
template <class Id>
void sort_frontier_cuda(executor& on, bfs_data<Id>& data, u64 count, buffer<u8>& scratch);

}  // namespace penstock::apps
