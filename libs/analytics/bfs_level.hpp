// One level of a level-synchronous breadth-first search: from the vertices of this level to those that they reach, or, where
// each edge is stored both ways, from those that are not reached yet to any of this level (Beamer, Asanovic, Patterson, SC
// 2012), which most of them find after few edges.
//
// A vertex's parent is set once, by compare-and-swap from "none", and whoever sets it sets its depth and appends it. Depths of
// the level that is searched were set by earlier kernels; in this one vertices get the next level's, which is another one.
#pragma once

#include "libs/analytics/tile_bodies.hpp"

namespace penstock::analytics {

/// What the kernels share; all in the executor's local memory.
template <class Id>
struct bfs_data {
  Id* parents = nullptr;           ///< [vertices]; -1: not reached
  std::int32_t* depths = nullptr;  ///< [vertices]; -1: not reached
  next_frontier<Id> next{};        ///< [vertices] the next level
  std::int32_t level = 0;
  bool lists = true;  ///< what is reached is appended to `next` at once; else by list_level, when the round is over

  PENSTOCK_FN bool is_reached(u64 v) const { return device_ref<Id>(parents[v]).load(relaxed) != -1; }
  PENSTOCK_FN std::int32_t depth(u64 v) const { return device_ref<std::int32_t>(depths[v]).load(relaxed); }

  /// Collective.
  template <bool ListsTiles = false, thread_group G>
  PENSTOCK_FN void reach(G const& g, bool mine, u64 parent, u64 v) const {
    Id unset = -1;
    const bool won = mine && !is_reached(v) &&
                     device_ref<Id>(parents[v]).compare_exchange_strong(unset, static_cast<Id>(parent), relaxed, relaxed);
    if (won) device_ref<std::int32_t>(depths[v]).store(level + 1, relaxed);
    if (lists) next.template append<ListsTiles>(g, won, v);
  }
};

/// From this level to what it reaches. `ListsTiles`: those that the next level touches, too.
template <class Id, bool ListsTiles = false>
struct bfs_push {
  bfs_data<Id> data;

  static constexpr bool wants_all = false, stops = false, reads_beside = false;
  PENSTOCK_FN bool wants(u64 v) const { return data.depth(v) == data.level; }

  template <thread_group G>
  struct visit {
    bfs_data<Id> const& data;
    PENSTOCK_FN visit(bfs_push const& visitor, G const&) : data(visitor.data) {}
    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64, u64 to) { data.template reach<ListsTiles>(g, mine, v, to); }
    PENSTOCK_FN void finish(G const&) {}
  };
};

/// From what is not reached yet to this level.
template <class Id>
struct bfs_pull {
  bfs_data<Id> data;

  static constexpr bool wants_all = false, stops = true, reads_beside = false;
  PENSTOCK_FN bool wants(u64 v) const { return !data.is_reached(v); }

  template <thread_group G>
  struct visit {
    bfs_data<Id> const& data;
    PENSTOCK_FN visit(bfs_pull const& visitor, G const&) : data(visitor.data) {}
    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64, u64 to) {
      data.reach(g, mine && data.depth(to) == data.level, to, v);
    }
    PENSTOCK_FN void finish(G const&) {}
  };
};

/// Lists the next level. Where it is long, each group that reaches some of it would append few at a time, and two million such
/// additions to one counter take longer than a look at all vertices.
template <class Id>
struct list_level {
  bfs_data<Id> data;
  u64 vertices = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices_together(g, range, vertices, [&](bool mine, u64 v) {
      data.next.template append<true>(g, mine && data.depth(v) == data.level + 1, v);
    });
  }
};

}  // namespace penstock::analytics
