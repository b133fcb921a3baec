// What tiles of edges need to be known by: the vertex of each tile's first edge, and the tiles that a frontier touches.
#pragma once

#include "libs/analytics/edge_lists.hpp"

namespace penstock::analytics {

/// The table of first vertices (BaM dissertation 6.3.5): a vertex knows the tiles that begin in its list, and no other one
/// does.
template <class Id>
struct list_first_vertices {
  u64 const* offsets = nullptr;
  Id* first_vertices = nullptr;  ///< [tiles]
  u64 vertices = 0;
  u32 tile_shift = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices(g, range, vertices, [&](u64 v) {
      const u64 tiles = (offsets[v + 1] + (1ull << tile_shift) - 1) >> tile_shift;
      for (u64 t = (offsets[v] + (1ull << tile_shift) - 1) >> tile_shift; t < tiles; ++t) {
        first_vertices[t] = static_cast<Id>(v);
      }
    });
  }
};

/// The tiles that have edges of some vertices, each once where `seen` has a bit for each (ActiveCachelineID of BaM dissertation
/// 8.2), otherwise as often as it has such vertices. Whoever walks the tiles clears the bits.
///
/// Only the first and the last tile of a list may be those of other vertices too: who sets the bit appends the tile.
template <class Id>
struct touched_tiles {
  u64 const* offsets = nullptr;
  u32* seen = nullptr;       ///< a bit for each tile, all clear; nullptr: none
  growing_list<Id> tiles{};  ///< [tiles, with `seen`; else 2 * vertices + tiles]
  u32 tile_shift = 0;

  /// Those of the vertices of the lanes that have one. Collective.
  template <thread_group G>
  PENSTOCK_COLD void append(G g, bool mine, u64 v) const {
    if (!any(g.ballot(mine))) return;
    const u64 begin = mine ? offsets[v] : 0, end = mine ? offsets[v + 1] : 0;
    const bool some = begin < end;
    const u64 first = begin >> tile_shift, last = some ? (end - 1) >> tile_shift : first;
    const bool ends_beyond = last != first;
    // Both bits are on their way together, and what is new is appended at once.
    const bool first_set = is_set(some, first), last_set = is_set(ends_beyond, last);
    const bool first_new = some && !first_set && set(first), last_new = ends_beyond && !last_set && set(last);
    const auto with_first = g.ballot(first_new), with_last = g.ballot(last_new);
    const u64 at = tiles.take_places(g, penstock::count(with_first) + penstock::count(with_last));
    if (first_new) tiles.items[at + count_below(with_first, g.rank())] = static_cast<Id>(first);
    if (last_new) tiles.items[at + penstock::count(with_first) + count_below(with_last, g.rank())] = static_cast<Id>(last);
    // What lies between is this vertex's alone; all lanes take it together, or a long list would keep one of them.
    for (auto waiting = g.ballot(some && last > first + 1); any(waiting); waiting = waiting & (waiting - 1)) {
      const u32 rank = lowest(waiting);
      const u64 from = g.shfl(first, rank), to = g.shfl(last, rank);
      for (u64 t = from + 1; t < to; t += size(g)) tiles.append(g, t + index_in(g) < to, t + index_in(g));
    }
  }

 private:
  // Of many vertices in one tile most find it set, and change nothing.
  PENSTOCK_FN bool is_set(bool wanted, u64 tile) const {
    return wanted && seen != nullptr && (device_ref<u32>(seen[tile / 32]).load(relaxed) & bit_of(tile)) != 0;
  }
  // Whether it was not set before.
  PENSTOCK_FN bool set(u64 tile) const {
    return seen == nullptr || (device_ref<u32>(seen[tile / 32]).fetch_or(bit_of(tile), relaxed) & bit_of(tile)) == 0;
  }
  PENSTOCK_FN static u32 bit_of(u64 tile) { return 1u << (tile % 32); }
};

/// What the next round is to look at: vertices and, where it walks these, their tiles.
template <class Id>
struct next_frontier {
  growing_list<Id> vertices{};
  touched_tiles<Id> touched{};  ///< without offsets: not asked for

  /// Collective. `ListsTiles`: if they are asked for. Who never does keeps its registers.
  template <bool ListsTiles, thread_group G>
  PENSTOCK_FN void append(G const& g, bool mine, u64 v) const {
    vertices.append(g, mine, v);
    if constexpr (ListsTiles) {
      if (touched.offsets != nullptr) touched.append(g, mine, v);
    }
  }
};

/// The tiles of a list of vertices.
template <class Id>
struct list_tiles {
  touched_tiles<Id> touched;
  Id const* chosen = nullptr;  ///< [count] vertices
  u64 count = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices_together(g, range, count, [&](bool mine, u64 k) { touched.append(g, mine, static_cast<u64>(chosen[k])); });
  }
};

/// Clears the bits of listed tiles that nobody is going to walk.
template <class Id>
struct forget_tiles {
  Id const* tiles = nullptr;  ///< [count]
  u32* seen = nullptr;
  u64 count = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices(g, range, count, [&](u64 k) { device_ref<u32>(seen[static_cast<u64>(tiles[k]) / 32]).store(0, relaxed); });
  }
};

/// How many edges the vertices of a list have in all.
template <class Id>
struct count_list_edges {
  u64 const* offsets = nullptr;
  Id const* chosen = nullptr;
  u64 count = 0;
  u64* edges = nullptr;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double mine = 0;  // below 2^53: exact
    for_vertices(g, range, count, [&](u64 k) {
      const u64 v = static_cast<u64>(chosen[k]);
      mine += static_cast<double>(offsets[v + 1] - offsets[v]);
    });
    const double all = sum_over(g, mine);
    if (is_leader(g) && all != 0) device_ref<u64>(*edges).fetch_add(static_cast<u64>(all), relaxed);
  }
};

}  // namespace penstock::analytics
