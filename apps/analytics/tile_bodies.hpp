// What tiles of edges need to be known by: the vertex of each tile's first edge, and the tiles that a frontier touches.
#pragma once

#include "apps/analytics/edge_lists.hpp"

namespace penstock::apps {

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

/// The tiles that have edges of the vertices in a list, each once where `seen` has a bit for each (ActiveCachelineID of BaM
/// dissertation 8.2), otherwise as often as it has such vertices. Whoever walks the tiles clears the bits.
///
/// Only the first and the last tile of a list may be those of other vertices too: who sets the bit appends the tile.
template <class Id>
struct list_tiles {
  u64 const* offsets = nullptr;
  Id const* chosen = nullptr;  ///< [count] vertices
  u64 count = 0;
  u32* seen = nullptr;       ///< a bit for each tile, all clear; nullptr: none
  growing_list<Id> tiles{};  ///< [tiles, with `seen`; else 2 * vertices + tiles]
  u32 tile_shift = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices_together(g, range, count, [&](bool mine, u64 k) {
      const u64 v = static_cast<u64>(chosen[k]);
      const u64 begin = offsets[v], end = offsets[v + 1];
      const bool some = mine && begin < end;
      const u64 first = begin >> tile_shift, last = some ? (end - 1) >> tile_shift : first;
      tiles.append(g, some && is_new(first), first);
      tiles.append(g, some && last != first && is_new(last), last);
      // What lies between is this vertex's alone; all lanes take it together, or a long list would keep one of them.
      for (auto waiting = g.ballot(some && last > first + 1); any(waiting); waiting = waiting & (waiting - 1)) {
        const u32 rank = lowest(waiting);
        const u64 from = g.shfl(first, rank), to = g.shfl(last, rank);
        for (u64 t = from + 1; t < to; t += size(g)) tiles.append(g, t + index_in(g) < to, t + index_in(g));
      }
    });
  }

 private:
  PENSTOCK_FN bool is_new(u64 tile) const {
    if (seen == nullptr) return true;
    const u32 bit = 1u << (tile % 32);
    device_ref<u32> word(seen[tile / 32]);
    return (word.load(relaxed) & bit) == 0 && (word.fetch_or(bit, relaxed) & bit) == 0;
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

}  // namespace penstock::apps
