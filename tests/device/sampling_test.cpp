// Neighbour sampling by lone threads and emulated warps, whole ones and parts: the outcome is that of one lone thread, and what
// a plain loop says.
#include "device/sampling_test_body.hpp"
#include "support/run_everywhere.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace penstock::test {
namespace {

using sampling::all_neighbors;

constexpr u64 graph_seed = 5, hop_key = 0x123456789abcdef;

/// All items by one lone thread, which is what everything else is compared with.
void start_alone(u64 items, auto const& body) { body(lone_thread{}, grid_range{0, items, 1}); }

/// All items by lone threads side by side.
struct lone_threads {
  u32 threads;

  void operator()(u64 items, auto const& body) const {
    run_threads(threads, [&](u32 i) { body(lone_thread{}, grid_range{i, items, threads}); });
  }
};

/// All items by groups of lanes; masks of warp w are masks[w].
struct lane_groups {
  char const* name;
  std::vector<std::vector<lane_mask>> masks;

  void operator()(u64 items, auto const& body) const {
    std::vector<lane_assignment> lanes;
    std::map<std::pair<u32, lane_mask>, u64> number_of;
    for (u32 w = 0; w < masks.size(); ++w) {
      for (const lane_mask mask : masks[w]) {
        assign_group(lanes, w, mask);
        number_of.emplace(std::pair{w, mask}, number_of.size());
      }
    }
    run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const& a) {
      body(g, grid_range{number_of.at({a.warp, a.group}), items, number_of.size()});
    });
  }
};

std::vector<lane_groups> all_lane_groups() {
  std::vector<lane_groups> all{{"two groups of 8 lanes", {{0xffu, 0xff0000u}}},
                               {"parts of 4 lanes of two warps", {{0xfu, 0xf0u}, {0xf0000000u}}},
                               {"masks with holes", {{0x90010204u, 0x00000801u}, {0x2u}}}};
  if (!yields_are_dear) all.push_back({"a warp", {{0xffffffffu}}});
  return all;
}

hop_case with_few_seeds(hop_case asked) {
  asked.seeds = {7, 3};
  return asked;
}

std::vector<hop_case> all_hops() {
  return {
      {.name = "few", .fanout = 3},
      {.name = "few_with_replacement", .fanout = 5, .replace = true},
      {.name = "few_of_trees", .fanout = 3, .disjoint = true, .narrow = true},
      with_few_seeds({.name = "more_than_a_lane_draws", .fanout = 70}),
      {.name = "all", .fanout = all_neighbors},
      {.name = "all_with_replacement", .fanout = all_neighbors, .replace = true},
      with_few_seeds({.name = "weights", .fanout = 4, .weighted = true}),
      with_few_seeds({.name = "narrow_weights", .fanout = 70, .weighted = true, .narrow = true}),
      with_few_seeds({.name = "weights_with_replacement", .fanout = 3, .replace = true, .weighted = true}),
      {.name = "edge_times", .fanout = 4, .disjoint = true, .times = times_of::edges},
      {.name = "narrow_edge_times", .fanout = all_neighbors, .disjoint = true, .times = times_of::edges, .narrow = true},
      {.name = "latest", .fanout = 4, .latest = true, .disjoint = true, .times = times_of::edges},
      {.name = "latest_by_node_times_of_some_weights",
       .fanout = 5,
       .weighted = true,
       .latest = true,
       .disjoint = true,
       .times = times_of::nodes},
      {.name = "times_with_replacement", .fanout = 2, .replace = true, .disjoint = true, .times = times_of::nodes},
  };
}

class sampling_hops : public testing::TestWithParam<hop_case> {
 protected:
  hops_outcome run(auto const& start) const { return two_hops{GetParam(), GetParam().lists(graph_), hop_key}.run(start); }

  sampled_graph graph_{graph_seed};
};
INSTANTIATE_TEST_SUITE_P(, sampling_hops, testing::ValuesIn(all_hops()),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(sampling_hops, are_what_a_plain_loop_says) {
  check_report report;
  check_hops(report, graph_, GetParam(), hop_key, run([](u64 items, auto const& body) { start_alone(items, body); }));
  expect_clean(report);
}

TEST_P(sampling_hops, are_the_same_by_any_threads) {
  const hops_outcome expected = run([](u64 items, auto const& body) { start_alone(items, body); });
  EXPECT_EQ(expected, run(lone_threads{8})) << "8 lone threads";
  for (lane_groups const& each : all_lane_groups()) EXPECT_EQ(expected, run(each)) << each.name;
}

/// All that a damaged graph makes two hops report.
u64 problem_of(hop_case const& asked, sampled_graph const& graph, auto const& start) {
  return two_hops{asked, asked.lists(graph), hop_key}.run(start).problem;
}

TEST(sampling_problems, are_the_first_of_their_kind_whoever_meets_them) {
  const auto expect = [](u64 expected, hop_case const& asked, sampled_graph const& graph) {
    EXPECT_EQ(expected, problem_of(asked, graph, [](u64 items, auto const& body) { start_alone(items, body); }));
    EXPECT_EQ(expected, problem_of(asked, graph, lone_threads{4}));
    for (lane_groups const& each : all_lane_groups()) EXPECT_EQ(expected, problem_of(asked, graph, each)) << each.name;
  };
  const auto word = [](sampling::problem what, u64 where) { return static_cast<u64>(what) << sampling::problem_shift | where; };
  const sampled_graph whole(graph_seed);
  hop_case seeds{.name = "", .fanout = 2};
  seeds.seeds[5] = sampled_graph::nodes;
  seeds.seeds[8] = ~u64{0};
  expect(word(sampling::problem::seed, 5), seeds, whole);

  const u64 first = whole.pointers[sampled_graph::longest];
  sampled_graph lost = whole;
  lost.neighbors[first + 120] = sampled_graph::nodes;
  lost.neighbors[first + 60] = ~u64{0};
  expect(word(sampling::problem::neighbor, first + 60), {.name = "", .fanout = all_neighbors}, lost);

  sampled_graph torn = whole;
  torn.pointers[13] = torn.neighbors.size() + 1;  // of lists 12 and 13
  expect(word(sampling::problem::list, 12), {.name = "", .fanout = 2}, torn);

  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    sampled_graph heavy = whole;
    heavy.weights[first + 33] = heavy.weights[first + 140] = bad;
    expect(word(sampling::problem::weight, first + 33), {.name = "", .fanout = 2, .weighted = true, .seeds = {3, 7}}, heavy);
  }
}

TEST(sampling_draws, take_each_neighbor_as_often_as_its_weight_says) {
  constexpr u64 hubs = 4000, length = 5;
  std::vector<u64> pointers(hubs + 1), neighbors(hubs * length);
  std::vector<double> weights(neighbors.size());
  for (u64 v = 0; v <= hubs; ++v) pointers[v] = v * length;
  for (u64 e = 0; e < neighbors.size(); ++e) weights[e] = static_cast<double>(e % length);
  for (const bool weighted : {false, true}) {
    for (const bool replace : {false, true}) {
      hop_case asked{.name = "", .fanout = 2, .replace = replace, .weighted = weighted};
      asked.seeds.resize(hubs);
      std::iota(asked.seeds.begin(), asked.seeds.end(), u64{0});
      sampling::edge_lists lists;
      lists.pointers = {described(pointers)};
      lists.neighbors = {described(neighbors)};
      if (weighted) lists.weights = {described(weights), 8};
      lists.targets = lists.sources = hubs;
      const auto outcome = two_hops{asked, lists, hop_key}.run([](u64 items, auto const& body) { start_alone(items, body); });
      std::vector<double> counted(length);
      for (const u64 e : outcome.hops[0].edges) ++counted[e % length];
      for (u64 k = 0; k < length; ++k) {
        double share = 2.0 / length;
        if (weighted && replace) share = 2 * static_cast<double>(k) / 10;
        if (weighted && !replace) {  // first, or second behind another
          const auto w = static_cast<double>(k);
          share = w / 10;
          for (u64 other = 1; other < length; ++other) {
            if (other != k) share += static_cast<double>(other) / 10 * w / (10 - static_cast<double>(other));
          }
        }
        const double expected = share * hubs;
        EXPECT_NEAR(expected, counted[k], 5 * std::sqrt(expected))
            << "weighted " << weighted << ", replace " << replace << ", neighbour " << k;
      }
    }
  }
}

TEST(sampling_induced_edges, are_all_among_the_nodes_by_any_threads) {
  const sampled_graph graph(graph_seed);
  for (const bool disjoint : {false, true}) {
    const hop_case asked{.name = "", .disjoint = disjoint};
    listed_nodes nodes(sampled_graph::nodes);
    const sampling::node_list list = nodes.list(disjoint);
    std::map<std::pair<u64, u32>, u32> numbers;
    std::vector<std::pair<u64, u32>> all;
    for (u64 k = 0; k < 40; ++k) {
      const std::pair<u64, u32> one{k < 35 ? 2 * k + k / 7 : 7, disjoint ? k % 3 : 0};  // and node 7 again
      nodes.nodes[k] = one.first;
      nodes.trees[k] = one.second;
      all.push_back(one);
      numbers.emplace(one, static_cast<u32>(k));
    }
    start_alone(items_of(all.size()), sampling::fill_table{list, all.size()});
    std::vector<u64> expected_edges;
    std::vector<u32> expected_targets, expected_rows;
    for (u32 k = 0; k < all.size(); ++k) {
      for (u64 e = graph.pointers[all[k].first]; e < graph.pointers[all[k].first + 1]; ++e) {
        const auto at = numbers.find({graph.neighbors[e], all[k].second});
        if (at == numbers.end()) continue;
        expected_edges.push_back(e);
        expected_targets.push_back(k);
        expected_rows.push_back(at->second);
      }
    }
    const auto check = [&](std::string const& who, auto const& start) {
      u64 problem = sampling::no_problem;
      std::vector<u64> offsets(all.size() + 1, ~u64{0});
      sampling::induced_edges step{asked.lists(graph), list, list, all.size(), offsets.data(), &problem};
      start(all.size() + 1, step);
      scan_on_host(offsets);
      std::vector<u64> edges(offsets.back());
      std::vector<u32> targets(edges.size()), rows(edges.size());
      step.edges = edges.data();
      step.edge_targets = targets.data();
      step.rows = rows.data();
      start(all.size(), step);
      EXPECT_EQ(sampling::no_problem, problem) << who;
      EXPECT_EQ(expected_edges, edges) << who;
      EXPECT_EQ(expected_targets, targets) << who;
      EXPECT_EQ(expected_rows, rows) << who;
    };
    check("one lone thread", [](u64 items, auto const& body) { start_alone(items, body); });
    check("8 lone threads", lone_threads{8});
    for (lane_groups const& each : all_lane_groups()) check(each.name, each);
  }
}

TEST(sampling_scores, are_the_same_by_any_threads) {
  const sampled_graph graph(graph_seed);
  constexpr u64 n = sampled_graph::nodes;
  const sampling::edge_lists lists = hop_case{}.lists(graph);
  constexpr u64 least = u64{3} << 50, damping = ~u64{0} / 20 * 17;
  std::vector<u64> expected(n, static_cast<u64>(sampling::score_one) / n), degrees(n);
  u64 expected_change = 0;
  for (const u64 to : graph.neighbors) ++degrees[to];
  const std::vector<u64> begin = expected;
  for (u32 round = 0; round < 3; ++round) {
    std::vector<u64> sums(n);
    for (u64 v = 0; v < n; ++v) {
      const u64 length = graph.pointers[v + 1] - graph.pointers[v];
      for (u64 e = graph.pointers[v]; e < graph.pointers[v + 1]; ++e) sums[graph.neighbors[e]] += expected[v] / length;
    }
    for (u64 v = 0; v < n; ++v) {
      const u64 score = least + high_product(sums[v], damping);
      expected_change += std::max(score, expected[v]) / 256 - std::min(score, expected[v]) / 256;
      expected[v] = score;
    }
  }
  const auto check = [&](std::string const& who, auto const& start) {
    std::vector<u64> scores = begin, sums(n);
    u64 problem = sampling::no_problem, change = 0;
    start(n, sampling::push_scores{lists, nullptr, sums.data(), &problem});
    EXPECT_EQ(degrees, sums) << who;
    sums.assign(n, 0);
    for (u32 round = 0; round < 3; ++round) {
      start(n, sampling::push_scores{lists, scores.data(), sums.data(), &problem});
      start(items_of(n), sampling::settle_scores{n, least, damping, scores.data(), sums.data(), &change});
    }
    EXPECT_EQ(sampling::no_problem, problem) << who;
    EXPECT_EQ(expected, scores) << who;
    EXPECT_EQ(std::vector<u64>(n), sums) << who;
    EXPECT_NEAR(static_cast<double>(expected_change), static_cast<double>(change), 3.0 * n) << who;
  };
  check("one lone thread", [](u64 items, auto const& body) { start_alone(items, body); });
  check("8 lone threads", lone_threads{8});
  for (lane_groups const& each : all_lane_groups()) check(each.name, each);
}

TEST(sampling_node_table, keeps_of_each_key_the_least_value_of_all_threads) {
  constexpr u32 threads = 8, inserts = 20'000, keys = 3000;
  std::vector<u64> slots_of_keys(8192, sampling::no_key);
  std::vector<u32> values(8192, sampling::no_value);
  const sampling::node_table table{slots_of_keys.data(), values.data(), 8192};
  const auto key_of = [](u64 k) {
    return sampling::node_key(random_word(1, 1, k) % sampling::max_nodes, static_cast<u32>(k % 3));
  };
  const auto pair_of = [&](u32 thread, u64 i) {
    const u64 drawn = random_word(2, thread, i);
    return std::pair{key_of(i % 4 == 0 ? drawn % 3 : drawn % keys), static_cast<u32>(drawn >> 33) | 5u};
  };
  std::map<u64, u32> expected;
  for (u32 t = 0; t < threads; ++t) {
    for (u64 i = 0; i < inserts; ++i) {
      const auto [key, value] = pair_of(t, i);
      const auto [at, is_new] = expected.emplace(key, value);
      if (!is_new) at->second = std::min(at->second, value);
    }
  }
  std::atomic<u32> wrong{0};
  run_threads(threads, [&](u32 t) {
    for (u64 i = 0; i < inserts; ++i) {
      const auto [key, value] = pair_of(t, i);
      const u64 slot = table.insert(key, value);
      wrong += device_ref<u64>(slots_of_keys[slot]).load(relaxed) == key && device_ref<u32>(values[slot]).load(relaxed) <= value
                   ? 0
                   : 1;
    }
  });
  EXPECT_EQ(0u, wrong);
  EXPECT_EQ(expected.size(),
            slots_of_keys.size() - static_cast<u64>(std::count(slots_of_keys.begin(), slots_of_keys.end(), sampling::no_key)));
  for (auto const& [key, value] : expected) {
    EXPECT_EQ(value, table.value_of(key)) << key;
    EXPECT_EQ(value, table.find(key)) << key;
  }
  EXPECT_EQ(sampling::no_value, table.find(sampling::node_key(17, 12345)));
}

}  // namespace
}  // namespace penstock::test
