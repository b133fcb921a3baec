// Connected components in one pass over the edges, by a forest of trees whose roots are merged edge by edge (Jaiganesh and
// Burtscher, HPDC 2018: ECL-CC; the union is Cybenko's, by compare-and-swap of roots). Of a directed graph: the weak ones.
//
// Invariant: parent[v] <= v, and following parents from v ends at a root, parent[r] == r, of v's component. A root gets another
// parent once, by compare-and-swap from itself to a smaller root, so no merge is lost. Whoever shortens a path stores an
// ancestor of the one it goes out from, and only into vertices that are no roots: two that do so at once both leave an ancestor
// there. So relaxed order does: a vertex's parent is a number, and each value that it ever had is an ancestor of it.
#pragma once

#include "libs/analytics/edge_lists.hpp"

namespace penstock::analytics {

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

/// Merges the trees of the ends of each edge.
///
/// Where each edge is stored both ways, one of the two will do: vertices whose parent is `settled` (trees were flattened
/// before) may be left out, since the other ends of their edges are either theirs already or not left out.
template <class Id>
struct merge_trees {
  forest<Id> trees;
  bool both_ways = false;  ///< each edge lies in two lists
  Id settled = -1;         ///< -1: no vertex is left out

  static constexpr bool wants_all = false, stops = false, reads_beside = false;
  PENSTOCK_FN bool wants(u64 v) const { return settled < 0 || device_ref<Id>(trees.parent[v]).load(relaxed) != settled; }

  template <thread_group G>
  struct visit {
    merge_trees const& visitor;
    u64 vertex = ~0ull;
    Id near = -1;  ///< to the root of that vertex

    PENSTOCK_FN visit(merge_trees const& of, G const&) : visitor(of) {}
    PENSTOCK_FN void edge(G const&, bool mine, u64 v, u64, u64 to) {
      const bool once = visitor.both_ways && visitor.settled < 0;
      if (!mine || (once ? to >= v : to == v)) return;
      if (v != vertex) {
        vertex = v;
        near = static_cast<Id>(v);
      }
      near = visitor.trees.unite(near, static_cast<Id>(to));
    }
    PENSTOCK_FN void finish(G const&) {}
  };
};

/// Neighbours that a vertex is merged with before the rest of its edges.
inline constexpr u32 first_neighbours = 2;

/// Merges each vertex with its first neighbours (Sutton, Ben-Nun, Barak, IPDPS 2018: Afforest). After few of them most vertices
/// of a large component are in one tree, and their other edges need not be read. They lie in one sector, mostly, and are read
/// together.
template <class Id>
struct merge_neighbours {
  edge_lists<Id> lists;
  forest<Id> trees;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    array_ref<Id> neighbours(lists.edges);
    u64 looked_at = 0, sectors = 0;
    for_vertices_together(g, range, lists.vertices, [&](bool mine, u64 v) {
      const u64 begin = lists.offsets[v], end = lists.offsets[v + 1];
      bool has[first_neighbours];
      Id to[first_neighbours];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < first_neighbours; ++k) {
        has[k] = mine && begin + k < end;
        to[k] = neighbours.read(g, has[k], has[k] ? begin + k : 0);
      }
      PENSTOCK_UNROLL
      for (u32 k = 0; k < first_neighbours; ++k) {
        const bool good = static_cast<u64>(to[k]) < lists.vertices;
        if (has[k] && !good) device_ref<u64>(*lists.bad_edge).store(begin + k + 1, relaxed);
        if (has[k] && good) trees.unite(static_cast<Id>(v), to[k]);
        looked_at += count(g.ballot(has[k]));
        sectors += count(g.ballot(has[k] && (k == 0 || (begin + k) * sizeof(Id) % sector_bytes == 0)));
      }
    });
    if (!is_leader(g) || looked_at == 0) return;
    device_ref<u64>(*lists.traversed).fetch_add(looked_at, relaxed);
    // Vertices lie apart: none shares a sector with another.
    if (lists.edges.is_resident() && size(g) > 1) device_ref<u64>(*lists.sectors).fetch_add(sectors, relaxed);
  }
};

/// The parents of vertices drawn at random.
template <class Id>
struct sample_parents {
  forest<Id> trees;
  Id* sample = nullptr;  ///< [count]
  u64 count = 0;
  u64 vertices = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices(g, range, count, [&](u64 k) { sample[k] = trees.parent[mix(k) % vertices]; });
  }

 private:
  // SplitMix64's finaliser.
  PENSTOCK_FN static u64 mix(u64 k) {
    k = (k + 1) * 0x9e3779b97f4a7c15ull;
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9ull;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebull;
    return k ^ (k >> 31);
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

}  // namespace penstock::analytics
