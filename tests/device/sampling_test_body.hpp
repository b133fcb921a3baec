// Hops over a small graph step by step, as neighbor_sampler runs them, and what a plain loop says of each hop.
//
// start(items, body) runs a body in all groups of a run, and waits.
#pragma once

#include "libs/sampling/score_bodies.hpp"
#include "support/test_context.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace penstock::test {

template <class T>
sampling::array_descriptor described(std::vector<T> const& numbers) {
  sampling::array_descriptor array{};
  array.memory = const_cast<T*>(numbers.data());
  array.bytes = numbers.size() * sizeof(T);
  return array;
}

/// Lists of neighbours of one node type: empty ones, one of 150 edges, edges that are there twice, times and weights that tie.
struct sampled_graph {
  static constexpr u64 nodes = 90, longest = 7, longest_length = 150;

  explicit sampled_graph(u64 seed) {
    pointers.push_back(0);
    for (u64 v = 0; v < nodes; ++v) {
      const u64 length = v == longest ? longest_length : v % 9 == 0 ? 0 : random_word(seed, 1, v) % 12;
      pointers.push_back(pointers.back() + length);
    }
    for (u64 e = 0; e < pointers.back(); ++e) {
      const u64 drawn = random_word(seed, 2, e);
      neighbors.push_back(e % 6 == 0 ? longest : drawn % nodes);
      weights.push_back(drawn >> 32 & 3 ? static_cast<double>(drawn >> 34 & 7) : 0);
      edge_times.push_back(static_cast<std::int64_t>(drawn >> 40 & 7) - 3);
    }
    for (u64 v = 0; v < nodes; ++v) node_times.push_back(static_cast<std::int64_t>(random_word(seed, 3, v) % 7) - 3);
    for (const u64 p : pointers) short_pointers.push_back(static_cast<u32>(p));
    for (const u64 n : neighbors) short_neighbors.push_back(static_cast<u32>(n));
    for (const double w : weights) short_weights.push_back(static_cast<float>(w));
    for (const std::int64_t t : edge_times) short_times.push_back(static_cast<std::int32_t>(t));
  }

  std::vector<u64> pointers, neighbors;
  std::vector<double> weights;
  std::vector<std::int64_t> edge_times, node_times;
  std::vector<u32> short_pointers, short_neighbors;
  std::vector<float> short_weights;
  std::vector<std::int32_t> short_times;
};

enum class times_of : u32 { none, edges, nodes };

/// What two hops are asked for.
struct hop_case {
  char const* name = "";
  u32 fanout = 0;
  bool replace = false, weighted = false, latest = false, disjoint = false;
  times_of times = times_of::none;
  bool narrow = false;  ///< numbers of 4 bytes
  std::vector<u64> seeds = {7, 3, 88, 7, 0, 41, 12, 5, 64};

  sampling::edge_lists lists(sampled_graph const& graph) const {
    sampling::edge_lists all;
    all.targets = all.sources = sampled_graph::nodes;
    all.pointers =
        narrow ? sampling::integers{described(graph.short_pointers), 4} : sampling::integers{described(graph.pointers)};
    all.neighbors =
        narrow ? sampling::integers{described(graph.short_neighbors), 4} : sampling::integers{described(graph.neighbors)};
    if (weighted) {
      all.weights = narrow ? sampling::reals{described(graph.short_weights), 4} : sampling::reals{described(graph.weights), 8};
    }
    if (times == times_of::edges) {
      all.edge_times =
          narrow ? sampling::integers{described(graph.short_times), 4} : sampling::integers{described(graph.edge_times)};
    }
    if (times == times_of::nodes) all.node_times = sampling::integers{described(graph.node_times)};
    return all;
  }
  /// Times of the seeds, by tree; some find nothing.
  std::int64_t time_of_seed(u64 k) const { return static_cast<std::int64_t>(k % 9) - 4; }
  bool is_in_lanes() const {
    const bool scanned = weighted || times != times_of::none;
    return !scanned && (fanout <= sampling::max_drawn_by_lane || (replace && fanout != sampling::all_neighbors));
  }
};

struct hop_edges {
  std::vector<u64> offsets, edges, found;
  std::vector<u32> targets, rows;
  u64 counted = 0;  ///< by the last step
  bool operator==(hop_edges const&) const = default;
};

struct hops_outcome {
  std::vector<u64> nodes, numbered;  ///< how many after the seeds and after each hop
  std::vector<u32> trees;
  std::vector<hop_edges> hops;
  u64 problem = sampling::no_problem;
  bool operator==(hops_outcome const&) const = default;
};

/// Each number becomes the sum of those before it.
template <class T>
void scan_on_host(std::vector<T>& numbers) {
  T sum = 0;
  for (T& each : numbers) sum = static_cast<T>(sum + std::exchange(each, sum));
}

inline u64 items_of(u64 rows) { return ceil_div(rows, sampling::rows_of_item); }

/// A list of nodes with a table, both large enough.
struct listed_nodes {
  explicit listed_nodes(u64 bound)
      : nodes(bound), keys(std::bit_ceil(2 * bound), sampling::no_key), trees(bound), values(keys.size(), sampling::no_value) {}
  sampling::node_list list(bool disjoint) {
    return {nodes.data(), disjoint ? trees.data() : nullptr, {keys.data(), values.data(), keys.size()}, &numbered};
  }

  std::vector<u64> nodes, keys;
  std::vector<u32> trees, values;
  u64 numbered = 0;
};

struct two_hops {
  static constexpr u64 spare = 5;  ///< launches cover more than there is

  hop_case const& asked;
  sampling::edge_lists lists;
  u64 key;
  listed_nodes nodes{1 << 16};
  sampling::node_list list = nodes.list(asked.disjoint);
  std::vector<std::int64_t> seeds{}, times{};
  hops_outcome all{};

  template <class Start>
  hops_outcome run(Start const& start) {
    start(items_of(list.table.slots), sampling::clear_table{list.table});
    for (u64 k = 0; k < asked.seeds.size(); ++k) {
      seeds.push_back(static_cast<std::int64_t>(asked.seeds[k]));
      times.push_back(asked.time_of_seed(k));
    }
    start(items_of(seeds.size()), sampling::take_seeds{seeds.data(), seeds.size(), lists.targets, 0, list, &all.problem});
    u64 begin = 0;
    for (u32 stage = 0; stage < 2; ++stage) {
      const u64 end = nodes.numbered;
      all.numbered.push_back(end);
      run_hop(start, begin, end, stage);
      begin = end;
    }
    all.numbered.push_back(nodes.numbered);
    all.nodes.assign(nodes.nodes.begin(), nodes.nodes.begin() + static_cast<std::ptrdiff_t>(nodes.numbered));
    all.trees.assign(nodes.trees.begin(), nodes.trees.begin() + static_cast<std::ptrdiff_t>(nodes.numbered));
    return all;
  }

 private:
  template <class Start>
  void run_hop(Start const& start, u64 begin, u64 end, u32 stage) {
    hop_edges& into = all.hops.emplace_back();
    const u64 bound = end - begin + spare;
    std::vector<sampling::edge_list> lists_of_nodes(bound);
    into.offsets.assign(bound + 1, ~u64{0});
    const sampling::hop step{lists, list,  {&begin, &end, bound}, asked.fanout, asked.replace,         asked.latest,
                             key,   stage, times.data(),          &all.problem, lists_of_nodes.data(), into.offsets.data()};
    if (step.is_scanned()) {
      start(bound + 1, sampling::count_eligible{step});
    } else {
      start(items_of(bound + 1), sampling::count_lists{step});
    }
    scan_on_host(into.offsets);
    const u64 taken = into.offsets.back(), room = taken + spare;
    into.edges.assign(taken, ~u64{0});
    into.targets.assign(taken, 0);
    std::vector<u64> ranks(taken);
    const sampling::drawn_edges to{into.edges.data(), into.targets.data(), ranks.data()};
    if (asked.is_in_lanes()) {
      start(items_of(bound), sampling::choose_in_lane{step, to});
    } else {
      start(bound, sampling::choose_scanned{step, to});
    }
    into.found.assign(taken, 0);
    into.rows.assign(taken, 0);
    std::vector<u32> slots(taken), places(room + 1);
    start(items_of(room),
          sampling::look_up{step, into.edges.data(), into.targets.data(), nullptr, list, into.found.data(), slots.data()});
    start(items_of(room + 1), sampling::mark_new{room, &taken, list.table, slots.data(), places.data()});
    scan_on_host(places);
    start(items_of(room),
          sampling::number_new{step, &taken, places.data(), into.found.data(), into.targets.data(), slots.data(), list});
    start(items_of(room), sampling::finish_edges{&taken, &places[room], list.table, slots.data(), into.rows.data(),
                                                 &into.counted, &nodes.numbered});
  }
};

/// What may be drawn from a node on, in the order of its list.
inline std::vector<u64> eligible_edges(sampled_graph const& graph, hop_case const& asked, u64 node, u32 tree) {
  std::vector<u64> edges;
  for (u64 e = graph.pointers[node]; e < graph.pointers[node + 1]; ++e) {
    const std::int64_t until = asked.time_of_seed(tree);
    if (asked.times == times_of::edges && graph.edge_times[e] > until) continue;
    if (asked.times == times_of::nodes && graph.node_times[graph.neighbors[e]] > until) continue;
    if (!asked.weighted || graph.weights[e] > 0) edges.push_back(e);
  }
  return edges;
}

/// The edges of least rank, those of draw `draws` with replacement, which are counted from 1, or of the only one, 0.
inline std::vector<u64> least_edges(sampled_graph const& graph, hop_case const& asked, std::vector<u64> const& from, u64 taken,
                                    u64 key, sampling::draw_place const& place, u64 first, u64 draws = 0) {
  std::vector<std::pair<u64, u64>> ranked;
  for (const u64 e : from) {
    const u64 drawn = sampling::draw(key, place, draws << 40 | (e - first));
    u64 rank = asked.weighted ? sampling::ordered_quotient(sampling::exponential(drawn), graph.weights[e]) : drawn;
    if (asked.latest) {
      const std::int64_t time = asked.times == times_of::edges ? graph.edge_times[e] : graph.node_times[graph.neighbors[e]];
      rank = static_cast<u64>(100 - time);
    }
    ranked.emplace_back(rank, e);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<u64> edges;
  edges.reserve(taken);
  for (u64 k = 0; k < taken; ++k) edges.push_back(ranked[k].second);
  std::sort(edges.begin(), edges.end());
  return edges;
}

/// Whether the edges of one node are what its list, and a plain loop where that says which, has.
inline void check_choice(check_report& report, sampled_graph const& graph, hop_case const& asked, std::vector<u64> edges,
                         std::vector<u64> const& eligible, u64 key, sampling::draw_place const& place, u64 first) {
  const u64 all = eligible.size(), fanout = asked.fanout;
  const bool draws_again = asked.replace && asked.fanout != sampling::all_neighbors;
  PENSTOCK_CHECK_EQ(report, draws_again ? (all != 0 ? fanout : 0) : std::min(all, fanout), static_cast<u64>(edges.size()));
  for (const u64 e : edges) PENSTOCK_CHECK(report, std::binary_search(eligible.begin(), eligible.end(), e));
  if (draws_again) {
    for (u32 j = 0; !asked.is_in_lanes() && j < edges.size(); ++j) {
      PENSTOCK_CHECK_EQ(report, least_edges(graph, asked, eligible, 1, key, place, first, j + 1).front(), edges[j]);
    }
    return;
  }
  if (edges.size() == all) {
    PENSTOCK_CHECK(report, edges == eligible);
    return;
  }
  std::sort(edges.begin(), edges.end());
  PENSTOCK_CHECK(report, std::adjacent_find(edges.begin(), edges.end()) == edges.end());
  if (!asked.is_in_lanes()) {
    PENSTOCK_CHECK(report, least_edges(graph, asked, eligible, edges.size(), key, place, first) == edges);
  }
}

/// Whether two hops are what was asked for, and nodes are numbered in the order of the edges that led to them.
inline void check_hops(check_report& report, sampled_graph const& graph, hop_case const& asked, u64 key,
                       hops_outcome const& found) {
  PENSTOCK_CHECK_EQ(report, sampling::no_problem, found.problem);
  std::vector<std::pair<u64, u32>> nodes;  // with its tree
  std::map<std::pair<u64, u32>, u32> numbers;
  for (u32 k = 0; k < asked.seeds.size(); ++k) {
    nodes.emplace_back(asked.seeds[k], asked.disjoint ? k : 0);
    numbers.emplace(nodes.back(), k);
  }
  u64 begin = 0;
  for (u32 stage = 0; stage < 2; ++stage) {
    hop_edges const& hop = found.hops[stage];
    const u64 end = nodes.size();
    PENSTOCK_CHECK_EQ(report, end, found.numbered[stage]);
    PENSTOCK_CHECK_EQ(report, static_cast<u64>(hop.edges.size()), hop.counted);
    for (u64 local = begin; local < end; ++local) {
      const auto [node, tree] = nodes[local];
      const u64 first = hop.offsets[local - begin], last = hop.offsets[local - begin + 1];
      const std::vector<u64> chosen(hop.edges.begin() + static_cast<std::ptrdiff_t>(first),
                                    hop.edges.begin() + static_cast<std::ptrdiff_t>(last));
      check_choice(report, graph, asked, chosen, eligible_edges(graph, asked, node, tree), key,
                   {stage, static_cast<u32>(local)}, graph.pointers[node]);
      for (u64 e = first; e < last; ++e) PENSTOCK_CHECK_EQ(report, static_cast<u32>(local), hop.targets[e]);
      for (u64 e = first; e < last; ++e) {
        const std::pair<u64, u32> neighbor{graph.neighbors[hop.edges[e]], tree};
        const auto [at, is_new] = numbers.emplace(neighbor, static_cast<u32>(nodes.size()));
        if (is_new) nodes.push_back(neighbor);
        PENSTOCK_CHECK_EQ(report, at->second, hop.rows[e]);
      }
    }
    begin = end;
  }
  PENSTOCK_CHECK_EQ(report, static_cast<u64>(nodes.size()), found.numbered[2]);
  for (u64 k = 0; k < nodes.size() && k < found.nodes.size(); ++k) {
    PENSTOCK_CHECK_EQ(report, nodes[k].first, found.nodes[k]);
    if (asked.disjoint) PENSTOCK_CHECK_EQ(report, nodes[k].second, found.trees[k]);
  }
}

}  // namespace penstock::test
