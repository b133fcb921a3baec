// The kernels of algorithms over graphs, over a small random graph in memory, against loops over its edges.
#pragma once

#include "apps/analytics/components_bodies.hpp"
#include "apps/analytics/pagerank_bodies.hpp"
#include "apps/analytics/shortest_paths_bodies.hpp"
#include "support/test_context.hpp"

#include <vector>

namespace penstock::test {

/// Self loops, edges that are there twice, vertices without any, and one with very many; all where kernels reach it.
struct small_graph {
  static constexpr u64 vertices = 300, edges = 1500;

  small_graph(memory_resource& memory, u64 seed)
      : offsets(memory, memory_kind::shared, vertices + 1), words(memory, memory_kind::shared, 8),
        ends(memory, memory_kind::shared, edges), weights(memory, memory_kind::shared, edges) {
    std::vector<std::vector<std::int32_t>> lists(vertices);
    for (u64 e = 0; e < edges; ++e) {
      const u64 draw = random_word(seed, 1, static_cast<u32>(e));
      // The upper half is reached by few.
      const u64 from = e % 5 == 0 ? 7 : draw % vertices;
      lists[from].push_back(static_cast<std::int32_t>(draw / vertices % (e % 9 == 0 ? vertices : vertices / 2)));
    }
    u64 at = 0;
    for (u64 v = 0; v < vertices; ++v) {
      offsets.data()[v] = at;
      for (const std::int32_t to : lists[v]) ends.data()[at++] = to;
    }
    offsets.data()[vertices] = at;
    for (u64 e = 0; e < edges; ++e)
      weights.data()[e] = static_cast<std::int32_t>(random_word(seed, 2, static_cast<u32>(e)) % 20);
    for (u64 k = 0; k < 8; ++k) words.data()[k] = 0;
  }

  apps::edge_lists<std::int32_t> lists(u64 count, u32 run_vertices) const {
    return {{ends.data(), edges}, offsets.data(), words.data(), words.data() + 1, vertices, count, run_vertices, 2};
  }
  template <class Use>
  void for_each_edge(Use const& use) const {
    for (u64 v = 0; v < vertices; ++v) {
      for (u64 e = offsets.data()[v]; e < offsets.data()[v + 1]; ++e) use(v, static_cast<u64>(ends.data()[e]), e);
    }
  }

  buffer<u64> offsets;
  buffer<u64> words;  ///< edges looked at, bad edge, components, next, pile, bad weight
  buffer<std::int32_t> ends, weights;
};

/// start(items, body) runs a body in all groups that there are, and waits.
template <class Start>
void check_components(memory_resource& memory, check_report& report, u64 seed, Start const& start) {
  small_graph const graph(memory, seed);
  constexpr u64 n = small_graph::vertices;
  const buffer<std::int32_t> parents(memory, memory_kind::shared, n);
  const apps::forest<std::int32_t> trees{parents.data()};
  for (const u32 run : {1u, 7u}) {
    const auto lists = graph.lists(n, run);
    graph.words.data()[0] = graph.words.data()[2] = 0;
    start(ceil_div(n, apps::vertices_at_once), apps::plant_trees<std::int32_t>{trees, n});
    start(lists.runs(), apps::merge_trees<std::int32_t>{lists, trees, false});
    start(ceil_div(n, apps::vertices_at_once), apps::flatten_trees<std::int32_t>{trees, graph.words.data() + 2, n});
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
    PENSTOCK_CHECK_EQ(report, u64{small_graph::edges}, graph.words.data()[0]);
  }
}

template <class Start>
void check_paths(memory_resource& memory, check_report& report, u64 seed, Start const& start) {
  small_graph const graph(memory, seed);
  constexpr u64 n = small_graph::vertices, farthest = ~0ull;
  const buffer<u64> distances(memory, memory_kind::shared, n), least(memory, memory_kind::shared, 1);
  const buffer<u32> places(memory, memory_kind::shared, n);
  buffer<std::int32_t> frontier(memory, memory_kind::shared, n), next(memory, memory_kind::shared, n),
      pile(memory, memory_kind::shared, n), old_pile(memory, memory_kind::shared, n);
  u64* const words = graph.words.data();
  for (const u64 delta : {1, 15, 100000}) {
    for (u64 v = 0; v < n; ++v) {
      distances.data()[v] = v == 7 ? 0 : farthest;
      places.data()[v] = static_cast<u32>(v == 7 ? apps::waits::near : apps::waits::nowhere);
    }
    frontier.data()[0] = 7;
    words[3] = words[4] = 0;
    u64 size = 1, threshold = delta;
    while (size != 0 || words[4] != 0) {
      const auto data = [&] {
        return apps::path_data<std::int32_t, u64>{distances.data(), places.data(), frontier.data(), next.data(),
                                                  pile.data(),      words + 3,     words + 4,       words + 5};
      };
      if (size != 0) {
        const auto lists = graph.lists(size, 2);
        const array_view<std::int32_t> weights(graph.weights.data(), small_graph::edges);
        start(lists.runs(), apps::relax_edges<std::int32_t, std::int32_t>{lists, weights, data(), threshold});
      } else {
        threshold += delta;
        std::swap(pile, old_pile);
        const u64 waiting = words[4];
        words[4] = 0;
        least.data()[0] = farthest;
        start(ceil_div(waiting, apps::vertices_at_once),
              apps::read_pile<std::int32_t, u64>{data(), old_pile.data(), waiting, threshold, least.data()});
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

template <class Start>
void check_ranks(memory_resource& memory, check_report& report, u64 seed, Start const& start) {
  small_graph const graph(memory, seed);
  constexpr u64 n = small_graph::vertices;
  const buffer<double> rank(memory, memory_kind::shared, n), share(memory, memory_kind::shared, n),
      sum(memory, memory_kind::shared, n), words(memory, memory_kind::shared, 2);
  const apps::rank_data<double> data{rank.data(), share.data(), sum.data(), words.data(), words.data() + 1};
  for (const bool push : {false, true}) {
    for (u64 v = 0; v < n; ++v) {
      rank.data()[v] = static_cast<double>(v + 1);
      sum.data()[v] = 0;
    }
    words.data()[0] = words.data()[1] = 0;
    start(ceil_div(n, apps::vertices_at_once), apps::share_ranks<double>{data, graph.offsets.data(), n, 0.5});
    const auto lists = graph.lists(n, 3);
    if (push) {
      start(lists.runs(), apps::push_ranks<std::int32_t, double>{lists, data});
    } else {
      start(lists.runs(), apps::pull_ranks<std::int32_t, double>{lists, data});
    }
    std::vector<double> expected(n, 0), shares(n, 0);
    double lost = 0, change = 0;
    for (u64 v = 0; v < n; ++v) {
      const u64 degree = graph.offsets.data()[v + 1] - graph.offsets.data()[v];
      const double kept = 0.5 * static_cast<double>(v + 1);
      (degree == 0 ? lost : shares[v]) += degree == 0 ? kept : kept / static_cast<double>(degree);
    }
    graph.for_each_edge([&](u64 v, u64 to, u64) { (push ? expected[to] : expected[v]) += push ? shares[v] : shares[to]; });
    const auto near = [&](double wanted, double found) {
      PENSTOCK_CHECK(report, found > wanted - 1e-9 * (1 + wanted) && found < wanted + 1e-9 * (1 + wanted));
    };
    near(lost, words.data()[0]);
    for (u64 v = 0; v < n; ++v) near(expected[v], sum.data()[v]);
    start(ceil_div(n, apps::vertices_at_once), apps::take_ranks<double>{data, n, 2});
    for (u64 v = 0; v < n; ++v) {
      near(2 + expected[v], rank.data()[v]);
      PENSTOCK_CHECK(report, sum.data()[v] == 0);
      const double moved = 2 + expected[v] - static_cast<double>(v + 1);
      change += moved < 0 ? -moved : moved;
    }
    near(change, words.data()[1]);
  }
}

template <class Start>
void check_algorithms(memory_resource& memory, check_report& report, u64 seed, Start const& start) {
  check_components(memory, report, seed, start);
  check_paths(memory, report, seed, start);
  check_ranks(memory, report, seed, start);
}

}  // namespace penstock::test
