// Neighbour sampling by lone threads and emulated warps, whole ones and parts: the outcome is that of one lone thread, and what
// a plain loop says. Rows that are kept next to the kernels: gathers give what the file has.
#include "device/sampling_fixture.hpp"
#include "device/sampling_test_body.hpp"
#include "support/run_everywhere.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace penstock::test {
namespace {

using sampling::all_neighbors;
using test_support::noise;
using test_support::put_file;
using test_support::refusal_of;
using test_support::scratch_folder;

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

TEST(sampling_draws, have_the_known_answers_of_philox) {
  const auto expect = [](sampling::drawn_pair const& expected, u64 key, sampling::draw_place const& place, u64 index) {
    const sampling::drawn_pair found = sampling::draw_pair(key, place, index);
    EXPECT_EQ(expected.first, found.first);
    EXPECT_EQ(expected.second, found.second);
    for (const u64 half : {0, 1}) {
      if (index >> 63 != 0) continue;
      EXPECT_EQ(half == 0 ? expected.first : expected.second, sampling::draw(key, place, 2 * index + half));
    }
  };
  // Counter words 0 and 1 are the index, 2 the node, 3 the stage; each word of an answer is the upper half of its number, or
  // the lower one of the number before.
  expect({0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c}, 0, {0, 0}, 0);
  expect({0x41c83b0e408f276d, 0x6d5451fda20bc7c6}, ~u64{0}, {~u32{0}, ~u32{0}}, ~u64{0});
  expect({0x94fdccebd16cfe09, 0x24126ea15001e420}, 0x299f31d0a4093822, {0x03707344, 0x13198a2e}, 0x85a308d3243f6a88);
}

TEST(sampling_draws, exponential_numbers_are_logarithms) {
  const auto expect = [](u64 drawn) {
    const long double expected = -std::log(static_cast<long double>(drawn | 1) * 0x1p-64L);
    const double found = sampling::exponential(drawn);
    ASSERT_GT(found, 0) << drawn;
    // Where the number is nearly 1, the end of the series is an absolute error.
    const long double wrong = std::abs(found - expected);
    ASSERT_LE(wrong, 2e-16L + 1e-10L * expected) << drawn << ": " << found << ", not " << expected;
  };
  for (const u64 drawn : {u64{0}, u64{1}, u64{2}, u64{3}, u64{1} << 63, (u64{1} << 63) - 1, ~u64{0}, ~u64{0} - 1})
    expect(drawn);
  for (u32 bit = 0; bit < 64; ++bit) expect(u64{1} << bit), expect(~u64{0} >> bit), expect(~u64{0} - (~u64{0} >> 1 >> bit));
  for (u64 k = 0; k < 1'000'000; ++k) expect(random_word(9, 9, k));
}

TEST(sampling_draws, quotients_that_are_no_double_have_an_order_too) {
  // Bits of a positive double: the smallest, the largest, and any in between.
  const auto number = [](u64 k) {
    constexpr u64 bound = std::bit_cast<u64>(1.7e308);
    const u64 drawn = random_word(6, 6, k);
    return std::bit_cast<double>(k % 7 == 0 ? 1 + drawn % 9 : k % 7 == 1 ? bound - drawn % 9 : 1 + drawn % bound);
  };
  for (u64 k = 0; k < 100'000; ++k) {
    const double a = sampling::exponential(random_word(6, 7, k)), b = number(3 * k);
    const double c = k % 2 == 0 ? number(3 * k + 1) : a, d = k % 2 == 0 ? number(3 * k + 2) : b * (1 + 1e-12);
    const long double left = static_cast<long double>(a) / b, right = static_cast<long double>(c) / d;
    if (std::abs(left - right) < 1e-14L * left) continue;
    ASSERT_EQ(left < right, sampling::ordered_quotient(a, b) < sampling::ordered_quotient(c, d))
        << a << " / " << b << ", " << c << " / " << d;
  }
}

TEST(sampling_draws, numbers_below_a_limit_are_spread_evenly) {
  EXPECT_EQ(0u, sampling::below(0, 7));
  EXPECT_EQ(6u, sampling::below(~u64{0}, 7));
  EXPECT_EQ(3u, sampling::below(u64{1} << 63, 7));
  EXPECT_EQ(0u, sampling::below(~u64{0}, 1));
}

struct sampler_case {
  char const* name;
  u32 fanout;
  bool funnel = false, replace = false, disjoint = false, weighted = false, timed = false, latest = false, induced = false;
  placement where = placement::host;
};

class sampling_by_executors : public testing::TestWithParam<sampler_case> {
 protected:
  std::vector<taken_sample> samples_by(u32 threads) const {
    sampler_case const& asked = GetParam();
    const auto on = open_executor("cpu", threads);
    const two_types graph(*on, asked.funnel, asked.weighted, asked.timed, asked.where);
    sampling::neighbor_sampler sampler(*on, {two_types::nodes, two_types::nodes}, graph.types());
    std::vector<taken_sample> all;
    for (const u64 count : {40, 700, 100}) {
      std::vector<std::int64_t> seeds(count), others(count / 4), times(count + count / 4);
      for (u64 k = 0; k < count; ++k) seeds[k] = static_cast<std::int64_t>(random_word(count, 1, k) % two_types::nodes);
      for (u64 k = 0; k < others.size(); ++k) others[k] = seeds[4 * k];
      for (u64 k = 0; k < times.size(); ++k) times[k] = static_cast<std::int64_t>(k % 9) - 1;
      sampling::sample_request request;
      request.seeds = {{seeds.data(), count}, {others.data(), others.size()}};
      request.seed_times = times.data();
      request.fanouts = {{asked.fanout, 2}, {asked.fanout, asked.fanout}, {3, asked.fanout}};
      request.replace = asked.replace;
      request.disjoint = asked.disjoint;
      request.latest = asked.latest;
      request.induced = asked.induced;
      request.seed = 77;
      request.call = count;
      all.push_back(take(sampler, request));
      check(graph, all.back(), asked.disjoint);
      EXPECT_EQ(all.back(), take(sampler, request)) << "the same again";
    }
    return all;
  }

 private:
  /// Nodes are there once behind the seeds, edges lead from where they should to where they say.
  static void check(two_types const& graph, taken_sample const& all, bool disjoint) {
    constexpr u32 targets[] = {0, 0, 1}, sources[] = {0, 1, 0};
    for (u32 type = 0; type < 2; ++type) {
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      u64 repeats = 0;
      for (u64 k = 0; k < all.nodes[type].size(); ++k) {
        const bool is_new = seen.emplace(all.nodes[type][k], disjoint ? all.trees[type][k] : 0).second;
        if (!is_new && k >= all.node_counts[type][0]) ++repeats;
      }
      EXPECT_EQ(0u, repeats);
    }
    for (u32 t = 0; t < 3; ++t) {
      u64 wrong = 0;
      for (u64 e = 0; e < all.edges[t].size(); ++e) {
        const auto row = static_cast<u64>(all.rows[t][e]), column = static_cast<u64>(all.columns[t][e]);
        const auto edge = static_cast<u64>(all.edges[t][e]);
        const auto& from = all.nodes[sources[t]];
        const auto& to = all.nodes[targets[t]];
        wrong += row >= from.size() || column >= to.size() ? 1 : 0;
        wrong += row < from.size() && graph.lists[t]->neighbor(edge) != static_cast<u64>(from[row]) ? 1 : 0;
        if (disjoint && wrong == 0) wrong += all.trees[sources[t]][row] != all.trees[targets[t]][column] ? 1 : 0;
      }
      EXPECT_EQ(0u, wrong) << "edge type " << t;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(
    , sampling_by_executors,
    testing::Values(sampler_case{.name = "funnel", .fanout = 10, .funnel = true},
                    sampler_case{.name = "funnel_of_trees", .fanout = 6, .funnel = true, .disjoint = true},
                    sampler_case{.name = "funnel_with_replacement", .fanout = 9, .funnel = true, .replace = true},
                    sampler_case{.name = "spread", .fanout = 7},
                    sampler_case{.name = "all", .fanout = all_neighbors, .where = placement::host_cached},
                    sampler_case{.name = "induced_weights", .fanout = 4, .weighted = true, .induced = true},
                    sampler_case{.name = "times", .fanout = 5, .disjoint = true, .timed = true},
                    sampler_case{.name = "latest_trees",
                                 .fanout = 3,
                                 .disjoint = true,
                                 .timed = true,
                                 .latest = true,
                                 .induced = true,
                                 .where = placement::host_cached}),
    [](auto const& test) { return std::string(test.param.name); });

TEST(sampling_memory, has_room_for_all_nodes_that_are_numbered) {
  constexpr u64 nodes = 6000, length = 20;
  std::vector<u64> pointers(nodes + 1), neighbors(nodes * length);
  for (u64 v = 0; v <= nodes; ++v) pointers[v] = v * length;
  for (u64 e = 0; e < neighbors.size(); ++e) neighbors[e] = (e * 7919 + nodes / 2) % nodes;
  for (const u64 count : {1, 3, 33, 1000, 2047}) {
    for (const bool disjoint : {false, true}) {
      for (const u32 fanout : {1, 2, 10, 20}) {
        guarded_executor on;
        const lists_in_arrays lists(on, pointers, neighbors);
        {
          sampling::neighbor_sampler sampler(on, {nodes}, {lists.type(0, 0)});
          std::vector<std::int64_t> seeds(count);
          std::iota(seeds.begin(), seeds.end(), std::int64_t{0});
          sampling::sample_request request;
          request.seeds = {{seeds.data(), count}};
          request.fanouts = {{fanout, 2}};
          request.disjoint = disjoint;
          EXPECT_EQ(count * fanout, take(sampler, request).edge_counts[0][0]);
        }
        EXPECT_EQ(0u, on.guards_broken()) << count << " seeds, fan-out " << fanout << ", disjoint " << disjoint;
      }
    }
  }
}

TEST_P(sampling_by_executors, is_the_same_by_eight_threads_as_by_one) {
  const std::vector<taken_sample> alone = samples_by(1), by_eight = samples_by(8);
  for (u64 k = 0; k < alone.size(); ++k) EXPECT_TRUE(alone[k] == by_eight[k]) << "sample " << k;
  EXPECT_GT(alone[1].edges[0].size(), 700u);
}

struct kept_place {
  char const* name;
  placement where;
  bool in_file;
};

/// Rows of which some are kept; what lies before row 0 in a file is none of them.
class sampling_kept_rows : public testing::TestWithParam<kept_place> {
 protected:
  static constexpr u64 rows = 300, header_bytes = 64, line_bytes = 512, frames = 64;

  std::unique_ptr<row_array> open(u64 row_bytes, bool writable = false) {
    row_bytes_ = row_bytes;
    content_ = noise(rows * row_bytes, row_bytes);
    memory_ = content_;
    row_array_options options;
    options.where = GetParam().where;
    options.writable = writable;
    options.cache.bytes = frames * line_bytes;
    options.cache.line_bytes = line_bytes;
    row_source source;
    if (GetParam().in_file) {
      source.path = scratch_ / "rows";
      source.offset = header_bytes;
      put_file(source.path, std::string(header_bytes, 'h') + content_);
    } else {
      source.memory = memory_.data();
    }
    return std::make_unique<row_array>(*on_, row_shape{rows, row_bytes}, source, options);
  }

  /// Others have changed all rows where they lie.
  void change_all() {
    std::string changed = content_;
    for (char& byte : changed) byte = static_cast<char>(~byte);
    if (GetParam().in_file) {
      std::fstream file(scratch_ / "rows", std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(header_bytes);
      file.write(changed.data(), static_cast<std::streamsize>(changed.size()));
    } else {
      std::copy(changed.begin(), changed.end(), memory_.begin());
    }
  }

  template <class Index>
  static row_list list_of(std::vector<Index> const& numbers) {
    return {numbers.data(), numbers.size(), sizeof(Index)};
  }

  /// Gathers, and compares with the file. Returns how many of the list are kept.
  template <class Index>
  u64 check_gather(row_array& array, std::vector<Index> const& numbers, std::set<u64> const& kept) const {
    std::string out(numbers.size() * row_bytes_, 'e');
    std::optional<u64> bad;
    u64 wrong = 0, of_kept = 0;
    const std::optional<u64> reported = array.gather_now(list_of(numbers), out.data());
    for (u64 k = 0; k < numbers.size(); ++k) {
      const auto row = static_cast<u64>(numbers[k] < 0 ? numbers[k] + static_cast<std::int64_t>(rows) : numbers[k]);
      std::string expected(row_bytes_, 'e');
      if (row < rows) {
        expected = content_.substr(row * row_bytes_, row_bytes_);
        of_kept += kept.count(row);
      } else if (!bad) {
        bad = k;
      }
      wrong += out.compare(k * row_bytes_, row_bytes_, expected) != 0 ? 1 : 0;
    }
    EXPECT_EQ(0u, wrong) << "rows of " << row_bytes_ << " bytes";
    EXPECT_EQ(bad, reported) << "rows of " << row_bytes_ << " bytes";
    return of_kept;
  }

  /// Row 0, the last one, and others in no order.
  static std::vector<std::int64_t> some_rows() {
    std::vector<std::int64_t> all(rows);
    std::iota(all.begin(), all.end(), std::int64_t{0});
    std::mt19937_64 random(3);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(37);
    for (const std::int64_t row : {std::int64_t{0}, static_cast<std::int64_t>(rows) - 1}) {
      if (std::find(all.begin(), all.end(), row) == all.end()) all.push_back(row);
    }
    return all;
  }
  static std::set<u64> as_set(std::vector<std::int64_t> const& numbers) { return {numbers.begin(), numbers.end()}; }

  std::unique_ptr<executor> on_ = open_executor("cpu", 3);
  scratch_folder scratch_;
  std::string content_, memory_;
  u64 row_bytes_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, sampling_kept_rows,
                         testing::Values(kept_place{"memory", placement::host, false},
                                         kept_place{"file", placement::host, true},
                                         kept_place{"cached_memory", placement::host_cached, false},
                                         kept_place{"storage", placement::storage, true}),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(sampling_kept_rows, and_others_are_gathered_as_the_list_says) {
  for (const u64 row_bytes : {4, 100, 512, 5000}) {
    const auto array = open(row_bytes);
    const std::vector<std::int64_t> kept = some_rows();
    EXPECT_EQ(0u, array->kept_rows_taken().own);
    array->keep_rows(kept);
    EXPECT_EQ(0u, array->kept_rows_taken().own);
    EXPECT_EQ(0u, array->bytes_requested());
    std::vector<std::int64_t> numbers(1000);
    for (u64 k = 0; k < numbers.size(); ++k) {
      const u64 drawn = random_word(row_bytes, 4, k);
      const auto any_row = static_cast<std::int64_t>(drawn % (2 * rows)) - static_cast<std::int64_t>(rows);
      numbers[k] = k % 3 == 0 ? kept[drawn % kept.size()] : any_row;
    }
    u64 taken = check_gather(*array, numbers, as_set(kept));
    EXPECT_GT(taken, 333u);
    EXPECT_EQ(taken, array->kept_rows_taken().own);
    numbers[411] = static_cast<std::int64_t>(rows);
    numbers[207] = -static_cast<std::int64_t>(rows) - 1;
    numbers[990] = std::numeric_limits<std::int64_t>::max();
    taken += check_gather(*array, numbers, as_set(kept));
    EXPECT_EQ(taken, array->kept_rows_taken().own);
    const std::vector<std::int32_t> few{static_cast<std::int32_t>(kept[2]), -1, 0, 0, 250, static_cast<std::int32_t>(rows)};
    taken += check_gather(*array, few, as_set(kept));
    EXPECT_EQ(taken, array->kept_rows_taken().own);
    EXPECT_EQ((2 * numbers.size() + few.size()) * row_bytes, array->bytes_requested());
    std::string out(few.size() * row_bytes, 'e');
    for (row_call& call : gather_all(std::vector<row_gather>{{array.get(), list_of(few), out.data()}})) {
      EXPECT_EQ(std::optional<u64>(5), call.wait());
    }
    EXPECT_EQ(content_.substr((rows - 1) * row_bytes), out.substr(row_bytes, row_bytes));
    EXPECT_EQ(taken + 4, array->kept_rows_taken().own);
  }
}

TEST_P(sampling_kept_rows, all_of_them_or_none) {
  const auto array = open(100);
  array->keep_rows({});
  std::vector<std::int64_t> all(rows);
  std::iota(all.rbegin(), all.rend(), std::int64_t{0});
  check_gather(*array, all, {});
  EXPECT_EQ(0u, array->kept_rows_taken().own);
  array->keep_rows(all);
  EXPECT_EQ(rows, check_gather(*array, all, as_set(all)));
  EXPECT_EQ(rows, array->kept_rows_taken().own);
}

TEST_P(sampling_kept_rows, are_not_read_where_the_others_lie) {
  for (const u64 row_bytes : {4, 512, 5000}) {
    const auto array = open(row_bytes);
    const std::vector<std::int64_t> kept = some_rows();
    array->keep_rows(kept);
    if (const auto before = array->stats()) {
      check_gather(*array, kept, as_set(kept));
      const auto after = array->stats();
      EXPECT_EQ(before->hits + before->misses, after->hits + after->misses);
      EXPECT_EQ(before->bytes_moved, after->bytes_moved);
    }
    change_all();
    check_gather(*array, kept, as_set(kept));  // copies
    if (GetParam().where == placement::host) {
      const std::set<u64> names = as_set(kept);
      for (char& byte : content_) byte = static_cast<char>(~byte);
      std::vector<std::int64_t> others;
      for (u64 row = 0; row < rows; ++row) {
        if (names.count(row) == 0) others.push_back(static_cast<std::int64_t>(row));
      }
      EXPECT_EQ(0u, check_gather(*array, others, names));  // read in place
    }
  }
}

TEST_P(sampling_kept_rows, are_not_taken_by_grids_and_parts) {
  const auto array = open(512);
  const std::vector<std::int64_t> kept = some_rows();
  array->keep_rows(kept);
  std::string out(rows * 512, 'e');
  EXPECT_EQ(std::nullopt, array->gather_now(row_list::range(0, 1, rows), out.data()));
  EXPECT_EQ(content_, out);
  row_list parts = list_of(kept);
  parts.part = {512, 100, 36};
  EXPECT_EQ(std::nullopt, array->gather_now(parts, out.data()));
  for (u64 k = 0; k < kept.size(); ++k) {
    EXPECT_EQ(content_.substr(static_cast<u64>(kept[k]) * 512 + 100, 36), out.substr(k * 36, 36)) << "row " << kept[k];
  }
  EXPECT_EQ(0u, array->kept_rows_taken().own);
}

TEST_P(sampling_kept_rows, are_refused_in_one_sentence_and_none_is_kept) {
  const auto array = open(100);
  const auto refusal = [](row_array& of, std::vector<std::int64_t> const& numbers) {
    return refusal_of(error_kind::bad_input, [&] { of.keep_rows(numbers); });
  };
  EXPECT_NE(std::string::npos, refusal(*array, {5, 9, 5}).find("row 5 is named twice"));
  EXPECT_NE(std::string::npos, refusal(*array, {5, -1}).find("no row -1"));
  EXPECT_NE(std::string::npos, refusal(*array, {5, rows}).find("no row 300"));
  struct stopped : std::exception {};
  u64 calls = 0;
  const auto stop = [&](u64 done, u64 total) {
    ++calls;
    EXPECT_EQ(200u, done);
    EXPECT_EQ(200u, total);
    throw stopped();
  };
  EXPECT_THROW(array->keep_rows(std::vector<std::int64_t>{5, 9}, stop), stopped);
  EXPECT_EQ(1u, calls);
  check_gather(*array, std::vector<std::int64_t>{5, 9, 5}, {});
  EXPECT_EQ(0u, array->kept_rows_taken().own);
  array->keep_rows(std::vector<std::int64_t>{5, 9});
  EXPECT_NE(std::string::npos, refusal(*array, {7}).find("some are kept already"));
  EXPECT_EQ(3u, check_gather(*array, std::vector<std::int64_t>{5, 9, 5, 7}, {5, 9}));
  EXPECT_EQ(3u, array->kept_rows_taken().own);
  const auto writable = open(100, true);
  EXPECT_NE(std::string::npos, refusal(*writable, {5}).find("it is written to"));
}

}  // namespace
}  // namespace penstock::test
