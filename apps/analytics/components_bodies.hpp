// Connected components in one pass over the edges, by a forest of trees whose roots are merged edge by edge (Jaiganesh and
// Burtscher, HPDC 2018: ECL-CC; the union is Cybenko's, by compare-and-swap of roots). Of a directed graph: the weak ones.
//
// Invariant: parent[v] <= v, and following parents from v ends at a root, parent[r] == r, of v's component. A root gets another
// parent once, by compare-and-swap from itself to a smaller root, so no merge is lost. Whoever shortens a path stores an
// ancestor of the one it goes out from, and only into vertices that are no roots: two that do so at once both leave an ancestor
// there. So relaxed order does: a vertex's parent is a number, and each value that it ever had is an ancestor of it.
#pragma once

#include "apps/analytics/edge_lists.hpp"

namespace penstock::apps {

template <class Id>
struct forest {
  Id* parent = nullptr;  ///< [vertices], each its own at first

  PENSTOCK_FN Id root(Id v) const {
    Id above = load(v);
    while (above != v) {
      const Id next = load(above);
      if (next != above) device_ref<Id>(parent[v]).store(next, relaxed);
      v = above;
      above = next;
    }
    return v;
  }

  /// Puts two vertices into one tree, and gives a vertex near its root.
  PENSTOCK_FN Id unite(Id a, Id b) const {
    for (;;) {
      a = root(a);
      b = root(b);
      if (a == b) return a;
      if (a < b) {
        const Id larger = b;
        b = a;
        a = larger;
      }
      Id seen = a;
      if (device_ref<Id>(parent[a]).compare_exchange_strong(seen, b, relaxed, relaxed)) return b;
    }
  }

 private:
  PENSTOCK_FN Id load(Id v) const { return device_ref<Id>(parent[v]).load(relaxed); }
};

template <class Id>
struct plant_trees {
  forest<Id> trees;
  u64 vertices = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices(g, range, vertices, [&](u64 v) { trees.parent[v] = static_cast<Id>(v); });
  }
};

template <class Id>
struct merge_trees {
  edge_lists<Id> lists;
  forest<Id> trees;
  bool both_ways = false;  ///< each edge lies in two lists: one of them will do

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    lists.for_each_vertex(
        g, range, [](u64 k) { return k; },
        [&](u64 v, u64 begin, u64 end, array_ref<Id>& neighbours) {
          Id near = static_cast<Id>(v);
          lists.walk(g, begin, end, neighbours, [&](bool mine, u64, u64 to) {
            if (mine && (both_ways ? to < v : to != v)) near = trees.unite(near, static_cast<Id>(to));
          });
        });
  }
};

/// Each vertex gets its root for a parent: the smallest vertex of its component. Counts them.
template <class Id>
struct flatten_trees {
  forest<Id> trees;
  u64* components = nullptr;
  u64 vertices = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double roots = 0;
    for_vertices(g, range, vertices, [&](u64 v) {
      const Id root = trees.root(static_cast<Id>(v));
      device_ref<Id>(trees.parent[v]).store(root, relaxed);
      roots += root == static_cast<Id>(v) ? 1 : 0;
    });
    const double all = sum_over(g, roots);
    if (is_leader(g) && all != 0) device_ref<u64>(*components).fetch_add(static_cast<u64>(all), relaxed);
  }
};

}  // namespace penstock::apps
