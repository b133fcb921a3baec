// The kernels of algorithms over graphs, over a small random graph, against loops over its edges.
#pragma once

#include "device/small_graph.hpp"
#include "libs/analytics/bfs_level.hpp"
#include "libs/analytics/components_bodies.hpp"
#include "libs/analytics/pagerank_bodies.hpp"
#include "libs/analytics/shortest_paths_bodies.hpp"
#include "libs/analytics/tile_bodies.hpp"
#include "support/test_context.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace penstock::test {

template <class Start>
void check_components(executor& on, edges_at where, check_report& report, u64 seed, bool brief, Start const& start) {
  memory_resource& memory = on.memory();
  small_graph const graph(on, seed, where);
  constexpr u64 n = small_graph::vertices;
  const buffer<std::int32_t> parents(memory, memory_kind::shared, n);
  const analytics::forest<std::int32_t> trees{parents.data()};
  for (u32 way = 0; way <= ways_to_walk; ++way) {
    if (is_left_out(brief, way)) continue;
    graph.words.data()[0] = graph.words.data()[2] = 0;
    start(ceil_div(n, analytics::vertices_at_once), analytics::plant_trees<std::int32_t>{trees, n});
    if (way == ways_to_walk) {
      start(ceil_div(n, analytics::vertices_at_once), analytics::merge_neighbours<std::int32_t>{graph.lists(), trees});
      u64 first = 0;
      for (u64 v = 0; v < n; ++v) first += std::min<u64>(2, graph.offsets.data()[v + 1] - graph.offsets.data()[v]);
      PENSTOCK_CHECK_EQ(report, first, graph.words.data()[0]);
      graph.for_each_edge([&](u64 v, u64 to, u64 e) {
        if (e >= graph.offsets.data()[v] + 2) return;
        PENSTOCK_CHECK_EQ(report, trees.root(static_cast<std::int32_t>(v)), trees.root(static_cast<std::int32_t>(to)));
      });
      graph.words.data()[0] = 0;
    }
    walk_all(graph, analytics::merge_trees<std::int32_t>{trees}, way % ways_to_walk, start);
    start(ceil_div(n, analytics::vertices_at_once), analytics::flatten_trees<std::int32_t>{trees, graph.words.data() + 2, n});
    std::vector<u64> labels(n);
    for (u64 v = 0; v < n; ++v) labels[v] = v;
    for (bool changed = true; changed;) {
      changed = false;
      graph.for_each_edge([&](u64 v, u64 to, u64) {
        const u64 least = std::min(labels[v], labels[to]);
        changed |= labels[v] != least || labels[to] != least;
        labels[v] = labels[to] = least;
      });
    }
    u64 components = 0;
    for (u64 v = 0; v < n; ++v) {
      components += labels[v] == v ? 1 : 0;
      PENSTOCK_CHECK_EQ(report, labels[v], static_cast<u64>(parents.data()[v]));
    }
    PENSTOCK_CHECK_EQ(report, components, graph.words.data()[2]);
    PENSTOCK_CHECK_EQ(report, graph.edges, graph.words.data()[0]);
  }
}

template <class Start>
void check_paths(executor& on, edges_at where, check_report& report, u64 seed, bool brief, Start const& start) {
  memory_resource& memory = on.memory();
  small_graph const graph(on, seed, where);
  constexpr u64 n = small_graph::vertices, farthest = ~0ull;
  const buffer<u64> distances(memory, memory_kind::shared, n), least(memory, memory_kind::shared, 1);
  const buffer<u32> places(memory, memory_kind::shared, n);
  listed_tiles listed(memory, graph);
  buffer<std::int32_t> frontier(memory, memory_kind::shared, n), next(memory, memory_kind::shared, n),
      pile(memory, memory_kind::shared, n), old_pile(memory, memory_kind::shared, n);
  u64* const words = graph.words.data();
  for (u32 k = 0; k < 3 * ways_to_walk_a_list; ++k) {
    if (is_left_out(brief, k)) continue;
    const u64 delta = std::array<u64, 3>{1, 15, 100000}[k % 3];
    u32 round = 0;
    for (u64 v = 0; v < n; ++v) {
      distances.data()[v] = v == 7 ? 0 : farthest;
      places.data()[v] = analytics::place_of(v == 7 ? analytics::waits::near : analytics::waits::taken);
    }
    frontier.data()[0] = 7;
    words[3] = words[4] = 0;
    listed.begin();
    u64 size = 1, threshold = delta;
    while (size != 0 || words[4] != 0) {
      const auto data = [&](u32 side) {
        const auto touched = k / 3 == 4 ? listed.touched(graph, side) : analytics::touched_tiles<std::int32_t>{};
        return analytics::path_data<std::int32_t, u64>{distances.data(),         places.data(),
                                                       frontier.data(),          {{next.data(), words + 3}, touched},
                                                       {pile.data(), words + 4}, words + 5};
      };
      if (size != 0) {
        const array_view<std::int32_t> weights = graph.weight_view();
        start(ceil_div(size, analytics::vertices_at_once), analytics::take_frontier<std::int32_t, u64>{data(0), size, ++round});
        const analytics::relax_edges<std::int32_t, std::int32_t, true> relax{weights, data(listed.now ^ 1u), threshold, round,
                                                                             n};
        walk_list(report, graph, listed, relax, frontier.data(), size, k / 3, start);
      } else {
        threshold += delta;
        std::swap(pile, old_pile);
        const u64 waiting = words[4];
        words[4] = 0;
        least.data()[0] = farthest;
        start(ceil_div(waiting, analytics::vertices_at_once),
              analytics::read_pile<std::int32_t, u64>{data(listed.now), old_pile.data(), waiting, threshold, least.data()});
        PENSTOCK_CHECK(report, words[4] == 0 || least.data()[0] >= threshold);
      }
      size = words[3];
      words[3] = 0;
      PENSTOCK_CHECK(report, size <= n && words[4] <= n);
      std::swap(frontier, next);
    }
    std::vector<u64> expected(n, farthest);
    expected[7] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      graph.for_each_edge([&](u64 v, u64 to, u64 e) {
        if (expected[v] == farthest) return;
        const u64 there = expected[v] + static_cast<u64>(graph.weights.data()[e]);
        changed |= there < expected[to];
        expected[to] = std::min(expected[to], there);
      });
    }
    for (u64 v = 0; v < n; ++v) PENSTOCK_CHECK_EQ(report, expected[v], distances.data()[v]);
    PENSTOCK_CHECK_EQ(report, u64{0}, words[5]);
  }
}

/// Of distances that a loop found: each predecessor has an edge that makes the distance of its vertex, and leads to the source.
template <class Start>
void check_links(executor& on, edges_at where, check_report& report, u64 seed, bool brief, Start const& start) {
  memory_resource& memory = on.memory();
  small_graph const graph(on, seed, where);
  constexpr u64 n = small_graph::vertices, farthest = ~0ull;
  const buffer<u64> distances(memory, memory_kind::shared, n);
  const buffer<std::int32_t> before(memory, memory_kind::shared, n), linked(memory, memory_kind::shared, n);
  u64* const at = distances.data();
  for (u64 v = 0; v < n; ++v) at[v] = v == 7 ? 0 : farthest;
  for (bool changed = true; changed;) {
    changed = false;
    graph.for_each_edge([&](u64 v, u64 to, u64 e) {
      if (at[v] == farthest) return;
      const u64 there = at[v] + static_cast<u64>(graph.weights.data()[e]);
      changed |= there < at[to];
      at[to] = std::min(at[to], there);
    });
  }
  u64* const words = graph.words.data();
  for (u32 way = 0; way < ways_to_walk; ++way) {
    if (is_left_out(brief, way)) continue;
    for (u64 v = 0; v < n; ++v) before.data()[v] = v == 7 ? 7 : -1;
    const auto links = [&](bool level) {
      words[6] = 0;
      return analytics::link_paths<std::int32_t, std::int32_t>{
          graph.weight_view(), at, before.data(), {linked.data(), words + 6, 0}, level};
    };
    walk_all(graph, links(false), way, start);
    PENSTOCK_CHECK_EQ(report, u64{0}, words[6]);
    do walk_all(graph, links(true), way, start);
    while (words[6] != 0);
    start(ceil_div(n, analytics::vertices_at_once),
          analytics::count_unlinked<std::int32_t, u64>{at, before.data(), words + 6, n});
    PENSTOCK_CHECK_EQ(report, u64{0}, words[6]);
    std::vector<bool> has_edge(n, false);
    graph.for_each_edge([&](u64 v, u64 to, u64 e) {
      if (before.data()[to] != static_cast<std::int32_t>(v) || at[v] == farthest) return;
      if (at[v] + static_cast<u64>(graph.weights.data()[e]) == at[to]) has_edge[to] = true;
    });
    for (u64 v = 0; v < n; ++v) {
      PENSTOCK_CHECK_EQ(report, at[v] != farthest, before.data()[v] >= 0);
      if (v == 7 || at[v] == farthest) continue;
      PENSTOCK_CHECK(report, has_edge[v]);
      u64 steps = 0;
      for (u64 k = v; k != 7 && steps <= n; k = static_cast<u64>(before.data()[k])) ++steps;
      PENSTOCK_CHECK(report, steps <= n);
    }
  }
}

/// What an edge counts in a test of ranks.
template <bool Weighted>
double counts(small_graph const& graph, u64 edge) {
  return Weighted ? static_cast<double>(graph.weights.data()[edge]) : 1;
}

template <bool Weighted, class Start>
void check_ranks(executor& on, edges_at where, check_report& report, u64 seed, bool brief, Start const& start) {
  memory_resource& memory = on.memory();
  small_graph const graph(on, seed, where);
  constexpr u64 n = small_graph::vertices;
  analytics::weights_if<Weighted> weights{};
  if constexpr (Weighted) weights = {analytics::as_words(graph.weight_view()), false};
  const buffer<double> strength(memory, memory_kind::shared, n), own(memory, memory_kind::shared, n);
  std::vector<double> leaving(n, 0);
  graph.for_each_edge([&](u64 v, u64, u64 e) { leaving[v] += counts<Weighted>(graph, e); });
  const buffer<double> rank(memory, memory_kind::shared, n), share(memory, memory_kind::shared, n),
      sum(memory, memory_kind::shared, n), words(memory, memory_kind::shared, 2);
  const analytics::rank_data<double> data{rank.data(), share.data(), sum.data(), words.data(), words.data() + 1};
  for (u32 way = 0; way < 2 * ways_to_walk; ++way) {
    if (is_left_out(brief, way)) continue;
    const bool push = way % 2 == 1;
    for (u64 v = 0; v < n; ++v) {
      rank.data()[v] = static_cast<double>(v + 1);
      sum.data()[v] = strength.data()[v] = 0;
      own.data()[v] = share.data()[v] = 1;
    }
    words.data()[0] = words.data()[1] = 0;
    double const* parts = nullptr;
    if constexpr (Weighted) {  // of 1 each, what is pulled is the weights that leave
      analytics::rank_data<double> ones = data;
      ones.sum = strength.data();
      walk_all(graph, analytics::pull_ranks<double, true>{ones, weights}, way / 2, start);
      for (u64 v = 0; v < n; ++v) PENSTOCK_CHECK(report, strength.data()[v] == leaving[v]);
      parts = strength.data();
    }
    start(ceil_div(n, analytics::vertices_at_once), analytics::share_ranks<double>{data, graph.offsets.data(), n, 0.5, parts});
    if (push) {
      walk_all(graph, analytics::push_ranks<double, Weighted>{data, weights}, way / 2, start);
    } else {
      walk_all(graph, analytics::pull_ranks<double, Weighted>{data, weights}, way / 2, start);
    }
    std::vector<double> expected(n, 0), shares(n, 0);
    double lost = 0, change = 0;
    for (u64 v = 0; v < n; ++v) {
      const double kept = 0.5 * static_cast<double>(v + 1);
      (leaving[v] == 0 ? lost : shares[v]) += leaving[v] == 0 ? kept : kept / leaving[v];
    }
    graph.for_each_edge([&](u64 v, u64 to, u64 e) {
      (push ? expected[to] : expected[v]) += (push ? shares[v] : shares[to]) * counts<Weighted>(graph, e);
    });
    const auto near = [&](double wanted, double found) {
      PENSTOCK_CHECK(report, found > wanted - 1e-9 * (1 + wanted) && found < wanted + 1e-9 * (1 + wanted));
    };
    near(lost, words.data()[0]);
    for (u64 v = 0; v < n; ++v) near(expected[v], sum.data()[v]);
    analytics::take_ranks<double> take{data, n, 2};
    for (u64 v = 0; v < n; ++v) own.data()[v] = static_cast<double>(v % 3);
    if (Weighted) {
      take.teleport = take.dangling = own.data();
      take.teleported = 0.25;
      take.lost = lost;
    }
    start(ceil_div(n, analytics::vertices_at_once), take);
    for (u64 v = 0; v < n; ++v) {
      if (Weighted) expected[v] += (0.25 + lost) * own.data()[v];
      near(2 + expected[v], rank.data()[v]);
      PENSTOCK_CHECK(report, sum.data()[v] == 0);
      const double moved = 2 + expected[v] - static_cast<double>(v + 1);
      change += moved < 0 ? -moved : moved;
    }
    near(change, words.data()[1]);
  }
}

/// Levels are those of a loop over all edges, and a parent lies one level above; from below, too, where edges go both ways.
template <class Start>
void check_levels(executor& on, edges_at where, check_report& report, u64 seed, bool brief, Start const& start) {
  memory_resource& memory = on.memory();
  small_graph const graph(on, seed, where);
  constexpr u64 n = small_graph::vertices;
  const buffer<std::int32_t> parents(memory, memory_kind::shared, n), depths(memory, memory_kind::shared, n);
  buffer<std::int32_t> frontier(memory, memory_kind::shared, n), next(memory, memory_kind::shared, n);
  listed_tiles listed(memory, graph);
  u64* const words = graph.words.data();
  // `pull`: of the graph whose edges all go the other way.
  for (u32 way = 0; way <= ways_to_walk_a_list; ++way) {
    if (is_left_out(brief, way)) continue;
    const bool pull = way == ways_to_walk_a_list;
    for (u64 v = 0; v < n; ++v) parents.data()[v] = depths.data()[v] = -1;
    parents.data()[7] = 7;
    depths.data()[7] = 0;
    frontier.data()[0] = 7;
    words[0] = words[3] = 0;
    listed.begin();
    u64 size = 1;
    for (std::int32_t level = 0; size != 0; ++level) {
      const bool lists = level % 2 == 0;
      const analytics::bfs_data<std::int32_t> data{
          parents.data(), depths.data(), {{next.data(), words + 3}, listed.next(graph, way)}, level, lists};
      if (pull) {
        walk_all(graph, analytics::bfs_pull<std::int32_t>{data}, 3, start);
      } else {
        walk_list(report, graph, listed, analytics::bfs_push<std::int32_t, true>{data}, frontier.data(), size, way, start);
      }
      if (!lists) start(ceil_div(n, analytics::vertices_at_once), analytics::list_level<std::int32_t>{data, n});
      size = words[3];
      words[3] = 0;
      PENSTOCK_CHECK(report, size <= n);
      std::swap(frontier, next);
    }
    std::vector<std::int32_t> expected(n, -1);
    expected[7] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      graph.for_each_edge([&](u64 v, u64 to, u64) {
        if (pull) std::swap(v, to);
        if (expected[v] < 0 || (expected[to] >= 0 && expected[to] <= expected[v] + 1)) return;
        expected[to] = expected[v] + 1;
        changed = true;
      });
    }
    std::vector<bool> has_parent(n, false);
    has_parent[7] = true;
    u64 edges = 0;
    graph.for_each_edge([&](u64 v, u64 to, u64) {
      edges += expected[v] >= 0 ? 1 : 0;
      if (pull) std::swap(v, to);
      if (parents.data()[to] == static_cast<std::int32_t>(v) && expected[v] + 1 == expected[to]) has_parent[to] = true;
    });
    // Each list was read once, whatever it was cut into.
    PENSTOCK_CHECK(report, pull || words[0] == edges);
    for (u64 v = 0; v < n; ++v) {
      PENSTOCK_CHECK_EQ(report, expected[v], depths.data()[v]);
      PENSTOCK_CHECK_EQ(report, expected[v] >= 0, parents.data()[v] >= 0);
      PENSTOCK_CHECK(report, expected[v] < 0 || has_parent[v]);
    }
  }
}

template <class Start>
void check_algorithms(executor& on, edges_at where, check_report& report, u64 seed, bool brief, Start const& start) {
  check_levels(on, where, report, seed, brief, start);
  check_components(on, where, report, seed, brief, start);
  check_paths(on, where, report, seed, brief, start);
  check_links(on, where, report, seed, brief, start);
  check_ranks<false>(on, where, report, seed, brief, start);
  check_ranks<true>(on, where, report, seed, brief, start);
}

}  // namespace penstock::test
