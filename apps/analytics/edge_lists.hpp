// The lists of neighbours that the kernels of all algorithms walk: a group per vertex, its lanes over the vertex's edges,
// aligned to memory lines (EMOGI's merged and aligned access).
#pragma once

#include "penstock/array/array_view.hpp"
#include "penstock/host/launch.hpp"

namespace penstock::apps {

/// Lanes of a group on CUDA.
inline constexpr u32 list_group_width = 32;

/// An item of a launch is a run of `run_vertices` vertices: they lie near each other on storage, so one group takes them, and
/// asks for the first lines of a whole run at once, one run ahead.
template <class Id>
struct edge_lists {
  array_view<Id> edges;
  u64 const* offsets = nullptr;  ///< [vertices + 1], in the executor's local memory
  u64* traversed = nullptr;      ///< edges looked at
  u64* bad_edge = nullptr;       ///< 1 + position of an edge that leads out of the graph, 0 if none was met
  u64 vertices = 0;
  u64 count = 0;  ///< vertices of this launch
  u32 run_vertices = 1;
  u32 lines_ahead = 0;  ///< of a long list, one window

  PENSTOCK_FN u64 runs() const { return ceil_div(count, run_vertices); }

  /// Calls use(v, begin, end, neighbours) for the vertices v = vertex(k) of this group's items: their edges are [begin, end),
  /// and `neighbours` is what `walk` takes. Collective.
  template <thread_group G, class Vertex, class Use>
  PENSTOCK_FN void for_each_vertex(G const& g, grid_range range, Vertex const& vertex, Use const& use) const {
    array_ref<Id> neighbours(edges);
    u64 looked_at = 0;
    look_ahead(g, range.first, vertex);
    for (u64 run = range.first; run < range.last; run += range.step) {
      if (run + range.step < range.last) look_ahead(g, run + range.step, vertex);
      const u64 first = run * run_vertices;
      const u64 last = first + run_vertices < count ? first + run_vertices : count;
      for (u64 at = first; at < last; ++at) {
        const u64 v = vertex(at);
        const u64 begin = offsets[v];
        const u64 end = offsets[v + 1];
        use(v, begin, end, neighbours);
        looked_at += end - begin;
      }
    }
    if (is_leader(g) && looked_at != 0) device_ref<u64>(*traversed).fetch_add(looked_at, relaxed);
  }

  /// Calls use(mine, position, to) for the edges [begin, end), each in one lane; `mine` is false in lanes that have none in a
  /// step. An edge that leads to no vertex is told and left out. Collective, and so is `use`.
  template <thread_group G, class Use>
  PENSTOCK_FN void walk(G const& g, u64 begin, u64 end, array_ref<Id>& neighbours, Use const& use) const {
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
      const bool inside = e >= begin && e < end;
      const Id to = neighbours.read(g, inside, inside ? e : begin);
      const bool good = static_cast<u64>(to) < vertices;
      if (inside && !good) device_ref<u64>(*bad_edge).store(e + 1, relaxed);
      use(inside && good, e, static_cast<u64>(to));
    }
  }

 private:
  // Every lane asks for another vertex's first line.
  template <thread_group G, class Vertex>
  PENSTOCK_FN void look_ahead(G const& g, u64 run, Vertex const& vertex) const {
    if (edges.is_resident()) return;
    for (u64 k = 0; k < run_vertices; k += size(g)) {
      const u64 at = run * run_vertices + k + index_in(g);
      const bool mine = k + index_in(g) < run_vertices && at < count;
      const u64 v = mine ? vertex(at) : 0;
      const u64 begin = offsets[v];
      edges.prefetch(g, mine && begin < offsets[v + 1], begin);
    }
  }
};

/// The sum of what the lanes of a group have. REQUIRES: as many lanes as a launch has, a power of two. Collective.
template <thread_group G>
PENSTOCK_FN double sum_over(G const& g, double mine) {
  const u32 lanes = size(g), index = index_in(g);
  for (u32 step = 1; step < lanes; step *= 2) {
    const u64 other = g.shfl(std::bit_cast<u64>(mine), nth(g.members(), (index + step) % lanes));
    mine += std::bit_cast<double>(other);
  }
  return mine;
}

/// Vertices that an item has where a launch looks at vertices alone.
inline constexpr u64 vertices_at_once = 64;

/// Calls use(v) for the vertices below `vertices` of a group's items, `vertices_at_once` each; every lane has others.
template <thread_group G, class Use>
PENSTOCK_FN void for_vertices(G const& g, grid_range range, u64 vertices, Use const& use) {
  for (u64 item = range.first; item < range.last; item += range.step) {
    const u64 end = (item + 1) * vertices_at_once < vertices ? (item + 1) * vertices_at_once : vertices;
    for (u64 v = item * vertices_at_once + index_in(g); v < end; v += size(g)) use(v);
  }
}

/// On CUDA, in the translation units that can compile it.
template <class Body>
void launch_on_gpu(executor& on, u64 items, Body const& body, u64 most_groups);

/// Runs a body over items on either executor. `most_groups`: that may run at once on a GPU, 0: as many as fit.
template <class Body>
void start(executor& on, u64 items, Body const& body, [[maybe_unused]] u64 most_groups = 0) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) return launch_on_gpu(on, items, body, most_groups);
#endif
  launch<list_group_width>(on, items, body);
}

/// Sorts `count` vertices, so that lists which share a line are read together: without it a line is fetched once for each of
/// them. `scratch` is the executor's own, kept between calls.
template <class Id>
void sort_vertices(executor& on, Id* from, Id* sorted, u64 count, u64 vertices, buffer<u8>& scratch);
template <class Id>
void sort_vertices_on_gpu(executor& on, Id const* from, Id* sorted, u64 count, u64 vertices, buffer<u8>& scratch);

}  // namespace penstock::apps
