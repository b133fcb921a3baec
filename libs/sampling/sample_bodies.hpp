// The last steps of a hop over one edge type, after choose_bodies.hpp: look the neighbours up, number the new ones; and what a
// sample is taken with.
#pragma once

#include "libs/sampling/choose_bodies.hpp"

namespace penstock::sampling {

/// What edges are sorted by before their neighbours are looked up: those beyond the last come last.
struct list_positions {
  u64 bound;  ///< edges at most
  u64 const* taken;
  u64 const* edges;
  u64* keys;   ///< [bound]
  u32* order;  ///< [bound]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 count = *taken;
    each_row(g, range, bound, [&](u64 k) {
      keys[k] = k < count ? edges[k] : ~u64{0};
      order[k] = static_cast<u32>(k);
    });
  }
};

/// The neighbours of the edges that were drawn.
struct look_up {
  hop of;
  u64 const* edges;
  u32 const* targets;
  u32 const* order;   ///< [taken] in which they are looked up; null: as they are
  node_list sources;  ///< of the neighbours' type
  u64* found;         ///< [taken] their numbers in the graph
  u32* slots;         ///< [taken]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 taken = of.offsets[of.from.bound];
    each_row(g, range, taken, [&](u64 k) {
      const u64 e = order != nullptr ? order[k] : k;
      u64 node = of.lists.neighbors[edges[e]];
      if (node >= of.lists.sources) {
        report_problem(of.found_problem, problem::neighbor, edges[e]);
        node = 0;
      }
      found[e] = node;
      const u32 tree = of.targets.tree_of(targets[e]);
      slots[e] = static_cast<u32>(sources.table.insert(node_key(node, tree), pending + static_cast<u32>(e)));
    });
  }
};

/// 1 for an edge that led to its node first, else 0.
struct mark_new {
  u64 bound;         ///< edges at most
  u64 const* taken;  ///< how many there are
  node_table table;
  u32 const* slots;
  u32* is_new;  ///< [bound + 1]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 count = *taken;
    each_row(g, range, bound + 1,
             [&](u64 e) { is_new[e] = e < count && table.values[slots[e]] == pending + static_cast<u32>(e) ? 1 : 0; });
  }
};

/// Numbers the new nodes in the order of the edges that led to them.
struct number_new {
  hop of;
  u64 const* taken;
  u32 const* places;  ///< [bound + 1] of is_new the sums before each
  u64 const* found;
  u32 const* targets;
  u32 const* slots;
  node_list sources;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 before = *sources.numbered;
    each_row(g, range, *taken, [&](u64 e) {
      if (places[e + 1] == places[e]) return;
      const u64 local = before + places[e];
      sources.nodes[local] = found[e];
      if (sources.trees != nullptr) sources.trees[local] = of.targets.tree_of(targets[e]);
      sources.table.values[slots[e]] = static_cast<u32>(local);
    });
  }
};

/// Local numbers of the neighbours; the last step of an edge type in a hop, which counts what is new.
struct finish_edges {
  u64 const* taken;
  u32 const* more;  ///< nodes that are new
  node_table table;
  u32 const* slots;
  u32* rows;          ///< [taken]
  u64* edges_of_hop;  ///< how many there are
  u64* numbered;      ///< nodes of the neighbours' type

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, *taken, [&](u64 e) { rows[e] = table.values[slots[e]]; });
    if (range.first != 0 || !is_leader(g)) return;
    *edges_of_hop = *taken;
    *numbered += *more;
  }
};

/// Before a sample: the word of problems, and counts.
struct reset_words {
  u64* words;
  u64 count;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) { words[k] = k == 0 ? no_problem : 0; });
  }
};

/// Copies numbers, such as the counts of all types to where a hop begins.
template <class T>
struct copy_numbers {
  T const* from;
  T* to;
  u64 count;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) { to[k] = from[k]; });
  }
};

/// Nodes and their trees as callers take them.
struct take_nodes {
  u64 const* nodes;
  u32 const* trees;
  u64 count;
  std::int64_t* to_nodes;
  std::int64_t* to_trees;  ///< null: they are not wanted

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) {
      to_nodes[k] = static_cast<std::int64_t>(nodes[k]);
      if (to_trees != nullptr) to_trees[k] = trees[k];
    });
  }
};

/// The edges of several hops, one behind the other.
struct take_edges {
  static constexpr u32 max_hops = 8;
  struct part {
    u32 const* rows;
    u32 const* columns;
    u64 const* edges;
    u64 end;  ///< of its edges, those of the parts before it counted
  };
  part parts[max_hops];
  u64 count;
  std::int64_t* rows;
  std::int64_t* columns;
  std::int64_t* edges;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) {
      u32 p = 0;
      u64 begin = 0;
      while (k >= parts[p].end) begin = parts[p++].end;
      part const& from = parts[p];
      rows[k] = from.rows[k - begin];
      columns[k] = from.columns[k - begin];
      edges[k] = static_cast<std::int64_t>(from.edges[k - begin]);
    });
  }
};

struct clear_table {
  node_table table;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, table.slots, [&](u64 k) {
      table.keys[k] = no_key;
      table.values[k] = no_value;
    });
  }
};

/// Into a table that is larger.
struct fill_table {
  node_list nodes;
  u64 count;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count,
             [&](u64 k) { nodes.table.insert(node_key(nodes.nodes[k], nodes.tree_of(k)), static_cast<u32>(k)); });
  }
};

/// All edges among the nodes of a sample, a group to a node: how many each has, and after a scan which.
struct induced_edges {
  edge_lists lists;
  node_list targets, sources;
  u64 count;     ///< of target nodes
  u64* offsets;  ///< [count + 1]
  u64* found_problem;
  u64* edges = nullptr;  ///< null: they are counted
  u32* edge_targets = nullptr;
  u32* rows = nullptr;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      if (k == count) {
        if (edges == nullptr && is_leader(g)) offsets[k] = 0;
        continue;
      }
      const edge_list list = lists.list_of(targets.nodes[k], found_problem);
      u64 done = edges == nullptr ? 0 : offsets[k];
      for (u64 first = 0; first < list.length; first += size(g)) {
        const u64 at = first + index_in(g);
        const u32 row = at < list.length ? row_of(list.first + at, targets.tree_of(k)) : no_value;
        const auto there = g.ballot(row != no_value);
        if (edges != nullptr && row != no_value) {
          const u64 e = done + count_below(there, g.rank());
          edges[e] = list.first + at;
          edge_targets[e] = static_cast<u32>(k);
          rows[e] = row;
        }
        done += penstock::count(there);
      }
      if (edges == nullptr && is_leader(g)) offsets[k] = done;
    }
  }

 private:
  PENSTOCK_FN u32 row_of(u64 edge, u32 tree) const {
    const u64 node = lists.neighbors[edge];
    if (node >= lists.sources) {
      report_problem(found_problem, problem::neighbor, edge);
      return no_value;
    }
    return sources.table.slots != 0 ? sources.table.find(node_key(node, tree)) : no_value;
  }
};

}  // namespace penstock::sampling
