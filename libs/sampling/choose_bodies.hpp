// The first steps of a hop over one edge type: count what each node takes, and choose it (the next: sample_bodies.hpp).
//
// Sizes are known on the device alone while a sample is under way: launches cover what may be there, and each step looks up how
// much there is.
#pragma once

#include "libs/sampling/draws.hpp"
#include "libs/sampling/edge_lists.hpp"
#include "libs/sampling/node_table.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::sampling {

inline constexpr u64 rows_of_item = 32;
inline constexpr u32 all_neighbors = ~u32{0};
inline constexpr u32 max_drawn_by_lane = 64;

/// Calls use(k) for k below `rows` in the lanes of a group.
template <class Group, class Use>
PENSTOCK_FN void each_row(Group const& g, grid_range range, u64 rows, Use const& use) {
  for (u64 item = range.first; item < range.last; item += range.step) {
    const u64 begin = item * rows_of_item, end = begin + rows_of_item < rows ? begin + rows_of_item : rows;
    for (u64 k = begin + index_in(g); k < end; k += size(g)) use(k);
  }
}

/// Nodes of one type that are in the sample.
struct node_list {
  u64* nodes = nullptr;  ///< [numbered]
  u32* trees = nullptr;  ///< [numbered], of a disjoint sample; null: it is one
  node_table table;
  u64* numbered = nullptr;  ///< how many nodes there are

  PENSTOCK_FN u32 tree_of(u64 local) const { return trees != nullptr ? trees[local] : 0; }
};

/// The first nodes of a type.
struct take_seeds {
  std::int64_t const* seeds;
  u64 count;
  u64 all;         ///< nodes of the type
  u64 first_seed;  ///< among the seeds of all types
  node_list to;
  u64* found_problem;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, count, [&](u64 k) {
      u64 node = static_cast<u64>(seeds[k]);
      if (node >= all) {
        report_problem(found_problem, problem::seed, first_seed + k);
        node = 0;
      }
      const u32 tree = static_cast<u32>(first_seed + k);
      to.nodes[k] = node;
      if (to.trees != nullptr) to.trees[k] = tree;
      if (all != 0) to.table.insert(node_key(node, to.trees != nullptr ? tree : 0), static_cast<u32>(k));
      if (k == 0) *to.numbered = count;
    });
  }
};

/// Local numbers that a hop begins at: `end` is a word of the device, `begin` another.
struct frontier {
  u64 const* begin;
  u64 const* end;
  u64 bound;  ///< at most so many

  PENSTOCK_FN u64 count() const { return *end - *begin; }
};

struct hop {
  edge_lists lists;
  node_list targets;  ///< of the type whose lists are drawn from
  frontier from;
  u32 fanout = 0;  ///< all_neighbors: all
  bool replace = false;
  bool latest = false;  ///< of those with times the latest, not any
  u64 key = 0;
  u32 stage = 0;
  std::int64_t const* seed_times = nullptr;  ///< by tree
  u64* found_problem = nullptr;

  edge_list* list = nullptr;  ///< [from.bound]
  u64* offsets = nullptr;     ///< [from.bound + 1] counts, and after the scan where each node's edges begin

  PENSTOCK_FN u64 target(u64 k) const { return *from.begin + k; }
  /// Whether a list has to be read to say what may be drawn.
  PENSTOCK_FN bool is_scanned() const { return lists.weights.are_there() || lists.has_times(); }

  /// Edges that may be drawn from this node on.
  PENSTOCK_FN bool is_eligible(u64 edge, u64 local) const {
    if (lists.has_times() && lists.time_of(edge) > seed_times[targets.tree_of(local)]) return false;
    if (!lists.weights.are_there()) return true;
    const double weight = lists.weights[edge];
    if (!(weight >= 0) || weight > 1.7e308) {
      report_problem(found_problem, problem::weight, edge);
      return false;
    }
    return weight > 0;
  }

  PENSTOCK_FN u32 taken_of(u64 eligible) const {
    if (replace && fanout != all_neighbors) return eligible != 0 ? fanout : 0;
    return static_cast<u32>(eligible < fanout ? eligible : fanout);
  }
};

/// What each node takes, where its list's length says that.
struct count_lists {
  hop of;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 count = of.from.count();
    each_row(g, range, of.from.bound + 1, [&](u64 k) {
      if (k >= count) {
        of.offsets[k] = 0;
        return;
      }
      of.list[k] = of.lists.list_of(of.targets.nodes[of.target(k)], of.found_problem);
      of.offsets[k] = of.taken_of(of.list[k].length);
    });
  }
};

/// The same by reading the lists, a group to a node.
struct count_eligible {
  hop of;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 count = of.from.count();
    for (u64 k = range.first; k < range.last; k += range.step) {
      if (k >= count) {
        if (is_leader(g)) of.offsets[k] = 0;
        continue;
      }
      const u64 local = of.target(k);
      const edge_list list = of.lists.list_of(of.targets.nodes[local], of.found_problem);
      u64 eligible = 0;
      for (u64 first = 0; first < list.length; first += size(g)) {
        const u64 at = first + index_in(g);
        eligible += penstock::count(g.ballot(at < list.length && of.is_eligible(list.first + at, local)));
      }
      if (is_leader(g)) {
        of.list[k] = list;
        of.offsets[k] = of.taken_of(eligible);
      }
    }
  }
};

/// Edges of one hop and type as they are drawn.
struct drawn_edges {
  u64* edges;    ///< [taken] positions in the lists
  u32* targets;  ///< [taken] local numbers
  u64* ranks;    ///< [taken], of choose_scanned
};

/// A lane to a node: with replacement, or few without (Floyd's algorithm: Bentley, CACM 30(9), 1987).
struct choose_in_lane {
  hop of;
  drawn_edges to;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    each_row(g, range, of.from.count(), [&](u64 k) {
      const u64 begin = of.offsets[k];
      const u32 taken = static_cast<u32>(of.offsets[k + 1] - begin);
      const edge_list list = of.list[k];
      const u64 local = of.target(k);
      const draw_place place{of.stage, static_cast<u32>(local)};
      u64* const edges = to.edges + begin;
      drawn_pair pair;
      for (u32 j = 0; j < taken; ++j) {
        to.targets[begin + j] = static_cast<u32>(local);
        if (!of.replace && taken == list.length) {
          edges[j] = list.first + j;
          continue;
        }
        if (j % 2 == 0) pair = draw_pair(of.key, place, j / 2);
        const u64 drawn = j % 2 == 0 ? pair.first : pair.second;
        edges[j] = list.first + (of.replace ? below(drawn, list.length) : unseen(edges, j, list, taken, drawn));
      }
    });
  }

 private:
  PENSTOCK_FN static u64 unseen(u64 const* edges, u32 j, edge_list const& list, u32 taken, u64 drawn) {
    const u64 last = list.length - taken + j, at = below(drawn, last + 1);
    for (u32 i = 0; i < j; ++i) {
      if (edges[i] == list.first + at) return last;
    }
    return at;
  }
};

/// A group to a node, which reads its list and keeps the edges of least rank: any number, weights, times.
///
/// Edges are tried in the order of the list, each against the worst that is kept, so the outcome does not depend on the size of
/// the group. Ranks of weighted edges are exponential with their weights as rates (Efraimidis and Spirakis, IPL 97(5), 2006).
struct choose_scanned {
  hop of;
  drawn_edges to;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u64 count = of.from.count();
    for (u64 k = range.first; k < range.last && k < count; k += range.step) {
      const u64 begin = of.offsets[k];
      const u32 taken = static_cast<u32>(of.offsets[k + 1] - begin);
      if (taken == 0) continue;
      const node here{of.list[k], of.target(k), begin, taken};
      for (u32 j = index_in(g); j < taken; j += size(g)) to.targets[begin + j] = static_cast<u32>(here.local);
      if (of.replace && of.fanout != all_neighbors) {
        for (u32 j = 0; j < taken; ++j) draw_one(g, here, j);
      } else {
        keep_least(g, here);
      }
    }
  }

 private:
  struct node {
    edge_list list;
    u64 local;
    u64 begin;
    u32 taken;
  };
  /// Which of two edges is kept: by rank, and of equal ones the earlier.
  struct ranked {
    u64 rank, at;
    PENSTOCK_FN bool precedes(ranked const& other) const { return rank < other.rank || (rank == other.rank && at < other.at); }
  };
  static constexpr u64 nowhere = ~u64{0};

  PENSTOCK_FN u64 rank_of(node const& here, u64 at, u32 draws) const {
    const u64 edge = here.list.first + at;
    if (of.latest && of.lists.has_times()) return ~(static_cast<u64>(of.lists.time_of(edge)) ^ u64{1} << 63);
    const draw_place place{of.stage, static_cast<u32>(here.local)};
    const u64 drawn = draw(of.key, place, u64{draws} << 40 | at);
    return of.lists.weights.are_there() ? ordered_quotient(exponential(drawn), of.lists.weights[edge]) : drawn;
  }

  template <class Group>
  PENSTOCK_FN static ranked first_of(Group const& g, ranked mine) {
    ranked best{nowhere, nowhere};
    for (u32 i = 0; i < size(g); ++i) {
      const u32 rank = nth(g.members(), i);
      const ranked other{g.shfl(mine.rank, rank), g.shfl(mine.at, rank)};
      if (other.at != nowhere && (best.at == nowhere || other.precedes(best))) best = other;
    }
    return best;
  }

  /// Draw j of one with replacement: the edge of least rank among ranks of its own.
  template <class Group>
  PENSTOCK_FN void draw_one(Group const& g, node const& here, u32 j) const {
    ranked best{nowhere, nowhere};
    for (u64 at = index_in(g); at < here.list.length; at += size(g)) {
      if (of.is_scanned() && !of.is_eligible(here.list.first + at, here.local)) continue;
      const ranked one{rank_of(here, at, j + 1), at};
      if (best.at == nowhere || one.precedes(best)) best = one;
    }
    best = first_of(g, best);
    if (is_leader(g)) to.edges[here.begin + j] = here.list.first + best.at;
  }

  template <class Group>
  PENSTOCK_FN void keep_least(Group const& g, node const& here) const {
    u32 kept = 0;
    worst_kept worst;
    for (u64 first = 0; first < here.list.length; first += size(g)) {
      const u64 at = first + index_in(g);
      const bool inside = at < here.list.length && (!of.is_scanned() || of.is_eligible(here.list.first + at, here.local));
      const bool all = !of.is_scanned() && here.taken == here.list.length;
      const u64 rank = inside && !all ? rank_of(here, at, 0) : 0;
      for (auto left = g.ballot(inside); any(left);) {
        if (kept < here.taken) {  // as many as there is room for, in their order
          const u32 room = here.taken - kept, place = count_below(left, g.rank());
          const bool mine = contains(left, g.rank()) && place < room;
          if (mine) put(here, kept + place, {rank, at});
          const auto went = g.ballot(mine);
          kept += penstock::count(went);
          left = without(left, went);
          if (kept == here.taken && !all) worst = find_worst(g, here);
          continue;
        }
        left = g.ballot(contains(left, g.rank()) && ranked{rank, at}.precedes(worst.edge));
        if (!any(left)) break;
        const u32 next = lowest(left);
        if (g.rank() == next) put(here, worst.slot, {rank, at});
        left = without(left, g.ballot(g.rank() == next));
        worst = find_worst(g, here);
      }
    }
  }

  PENSTOCK_FN void put(node const& here, u32 slot, ranked const& edge) const {
    to.ranks[here.begin + slot] = edge.rank;
    to.edges[here.begin + slot] = here.list.first + edge.at;
  }

  struct worst_kept {
    ranked edge{0, 0};
    u32 slot = 0;
  };
  template <class Group>
  PENSTOCK_FN worst_kept find_worst(Group const& g, node const& here) const {
    converge_after_call(g);
    worst_kept mine;
    bool found = false;
    for (u32 slot = index_in(g); slot < here.taken; slot += size(g)) {
      const ranked one{to.ranks[here.begin + slot], to.edges[here.begin + slot] - here.list.first};
      if (!found || mine.edge.precedes(one)) mine = {one, slot};
      found = true;
    }
    worst_kept worst;
    bool any_found = false;
    for (u32 i = 0; i < size(g); ++i) {
      const u32 rank = nth(g.members(), i);
      const ranked other{g.shfl(mine.edge.rank, rank), g.shfl(mine.edge.at, rank)};
      const u32 slot = static_cast<u32>(g.shfl(mine.slot, rank));
      const bool there = contains(g.ballot(found), rank);
      if (there && (!any_found || worst.edge.precedes(other))) worst = {other, slot};
      any_found = any_found || there;
    }
    converge_after_call(g);
    return worst;
  }
};

}  // namespace penstock::sampling
