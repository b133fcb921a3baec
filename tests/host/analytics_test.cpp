// Whole runs of the algorithms over graphs, by several threads, through small caches and in place.
#include "libs/analytics/analytics.hpp"
#include "graph_test_support.hpp"
#include "libs/analytics/bfs.hpp"
#include "libs/analytics/graph_choices.hpp"
#include "libs/graph/analytics_reference.hpp"
#include "libs/graph/array_edges.hpp"
#include "libs/graph/bfs_reference.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/graph/incoming.hpp"
#include "libs/graph/weights.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace penstock::analytics {
namespace {

class analytics : public testing::Test {
 protected:
  analytics() {
    graph::generator_spec spec = graph::parse_generator("kron:11");
    spec.weighted = true;
    graph::progress_meter meter;
    write_graph(graph::generator(spec), folder_ / "kron", {.directed = false},
                {.symmetrise = true, .drop_duplicates = true, .drop_self_loops = true}, meter);
  }

  template <class Options>
  Options options(std::string const& placement) const {
    Options with;
    with.graph = folder_ / "kron";
    with.placement = placement;
    with.executor = "cpu";
    with.cache_bytes = 128 << 10;
    with.line_bytes = 1024;
    with.threads = 4;
    with.verify = true;
    return with;
  }

  static void expect_verified(graph_cost const& cost) {
    EXPECT_TRUE(cost.verified.value_or(false)) << cost.violation;
    EXPECT_EQ(cost.level_sizes.size(), cost.level_seconds.size());
    bool const in_place = cost.placement == "host" || cost.placement == "pinned";
    EXPECT_EQ(cost.evictions > 0, !in_place);
    EXPECT_EQ(cost.bytes_moved > 0, !in_place);
  }

  template <class Job>
  static std::string said(Job const& job) {
    try {
      job();
    } catch (error const& e) {
      return e.what();
    }
    return "";
  }

  graph::scratch_folder folder_;
};

TEST_F(analytics, runs_are_verified_wherever_edges_lie) {
  for (std::string const placement : {"storage", "host", "host-cached", "pinned"}) {
    SCOPED_TRACE(placement);
    expect_verified(run_bfs(options<bfs_options>(placement)));
    expect_verified(run_components(options<graph_options>(placement)));
    expect_verified(run_pagerank(options<pagerank_options>(placement)));
    expect_verified(run_shortest_paths(options<paths_options>(placement)));
  }
}

// Behind a cache a walk over all edges is quicker by tiles, and one over a frontier by lists; what lies in memory has no lines.
TEST_F(analytics, threads_are_given_the_walk_that_is_quickest_for_them) {
  const auto ways = [](graph_cost const& cost) {
    return std::set<std::string>(cost.level_strategies.begin(), cost.level_strategies.end());
  };
  EXPECT_EQ(ways(run_pagerank(options<pagerank_options>("storage"))), std::set<std::string>{"tiled"});
  EXPECT_EQ(ways(run_pagerank(options<pagerank_options>("host"))), std::set<std::string>{"frontier"});
  EXPECT_EQ(ways(run_shortest_paths(options<paths_options>("storage"))), std::set<std::string>{"frontier"});
  EXPECT_EQ(ways(run_bfs(options<bfs_options>("storage"))).count("tiled"), 0u);
}

TEST_F(analytics, copies_of_lists_are_verified_in_many_parts) {
  for (u64 const bytes : {u64{1} << 9, u64{40} << 10, u64{64} << 20}) {
    SCOPED_TRACE(bytes);
    const auto expect_copied = [&](graph_cost const& cost) {
      EXPECT_TRUE(cost.verified.value_or(false)) << cost.violation;
      EXPECT_GE(cost.bytes_moved, cost.edges_traversed * sizeof(std::int32_t));
      EXPECT_EQ(cost.sector_bytes, 0u);
    };
    const auto with = [&](auto options) {
      options.cache_bytes = bytes;
      return options;
    };
    expect_copied(run_bfs(with(options<bfs_options>("subgraph"))));
    expect_copied(run_components(with(options<graph_options>("subgraph"))));
    expect_copied(run_pagerank(with(options<pagerank_options>("subgraph"))));
    expect_copied(run_shortest_paths(with(options<paths_options>("subgraph"))));
  }
  auto fixed = options<graph_options>("subgraph");
  fixed.strategy = "merged";
  EXPECT_EQ(said([&] { run_components(fixed); }),
            "walk strategy 'merged': placement subgraph copies lists and walks the copies in tiles: leave strategy auto");
}

TEST_F(analytics, copies_of_lists_tell_a_bad_weight_by_its_place_in_the_file) {
  std::string const name = folder_ / "negative";
  std::filesystem::copy(folder_ / "kron", name);
  auto const place = *graph::graph_folder::open(name).weights_place();
  std::fstream file(name + "/weights.npy", std::ios::in | std::ios::out | std::ios::binary);
  std::int32_t const wrong = -7;
  file.seekp(static_cast<std::streamoff>(place.data_offset + 4 * 1234)).write(reinterpret_cast<char const*>(&wrong), 4);
  file.close();
  for (std::string const placement : {"host", "subgraph"}) {
    auto with = options<paths_options>(placement);
    with.graph = name;
    const std::string refused = said([&] { run_shortest_paths(with); });
    EXPECT_NE(refused.find("the weight of edge 1234, "), std::string::npos) << refused;
    EXPECT_NE(refused.find(" is -7: give finite weights of 0 or more"), std::string::npos) << refused;
    auto ranks = options<pagerank_options>(placement);
    ranks.graph = name;
    ranks.weighted = true;
    EXPECT_NE(said([&] { run_pagerank(ranks); }).find("the weight of edge 1234, "), std::string::npos);
  }
}

TEST_F(analytics, sums_that_leave_64_bits_are_seen_before) {
  EXPECT_TRUE(graph::sums_fit(0x1p31 - 1, u64{1} << 32));
  EXPECT_FALSE(graph::sums_fit(0x1p31 - 1, (u64{1} << 32) + 3));
  EXPECT_TRUE(graph::sums_fit(1, u64{1} << 62));
  EXPECT_TRUE(graph::sums_fit(0x1p31, 0));
}

TEST_F(analytics, ranks_by_weights_and_paths_with_predecessors_are_verified_wherever_edges_lie) {
  for (std::string const placement : {"storage", "host", "host-cached", "pinned"}) {
    SCOPED_TRACE(placement);
    auto ranks = options<pagerank_options>(placement);
    ranks.weighted = ranks.wide = ranks.dangling = true;
    ranks.teleport.assign(graph::graph_folder::open(ranks.graph).vertices(), 0);
    ranks.teleport[3] = 2;
    ranks.teleport[9] = 5;
    expect_verified(run_pagerank(ranks));
    auto paths = options<paths_options>(placement);
    paths.parents = true;
    expect_verified(run_shortest_paths(paths));
  }
}

// What is verified of ranks that have not converged is that they are those of so many iterations, near enough.
TEST_F(analytics, ranks_that_have_not_converged_are_no_better_than_they_say) {
  auto with = options<pagerank_options>("host");
  with.iterations = 3;
  auto found = run_pagerank(with);
  EXPECT_FALSE(found.converged);
  EXPECT_TRUE(found.verified.value_or(false)) << found.violation;
  EXPECT_GT(found.change, with.tolerance);
  const auto graph = graph::graph_folder::open(with.graph);
  graph::progress_meter meter;
  graph::rank_rules rules;
  rules.limit = with.damping * found.change;
  auto const& ranks = std::get<std::vector<float>>(found.ranks);
  EXPECT_EQ(graph::verify_pagerank(graph, {ranks.begin(), ranks.end()}, rules, meter), "");
  rules.limit = with.tolerance;
  EXPECT_NE(graph::verify_pagerank(graph, {ranks.begin(), ranks.end()}, rules, meter), "");
}

TEST_F(analytics, drives_may_each_have_all_of_the_graph) {
  for (std::string const layout : {"striped", "replicated"}) {
    SCOPED_TRACE(layout);
    auto with = options<paths_options>("storage");
    with.media = "p5800x";
    with.drives = 3;
    with.layout = layout;
    expect_verified(run_shortest_paths(with));
  }
  auto wrong = options<bfs_options>("storage");
  wrong.media = "p5800x";
  wrong.layout = "raid6";
  EXPECT_EQ(said([&] { run_bfs(wrong); }), "open layout raid6: there is no such layout: choose striped or replicated");
}

TEST_F(analytics, directed_graphs_go_by_incoming_edges_where_they_are_there) {
  std::string const name = folder_ / "directed";
  graph::progress_meter meter;
  write_graph(graph::generator(graph::parse_generator("kron:11:8")), name, {.directed = true}, {}, meter);
  const auto with = [&](auto options) {
    options.graph = name;
    options.verify = true;
    return options;
  };
  const auto pulled = [](bfs_result const& found) {
    return std::count(found.level_strategies.begin(), found.level_strategies.end(), "pull");
  };
  const auto before = run_bfs(with(options<bfs_options>("host")));
  EXPECT_EQ(pulled(before), 0);
  const auto pushed = run_pagerank(with(options<pagerank_options>("host")));
  const auto opened = graph::graph_folder::open(name);
  EXPECT_FALSE(graph::has_incoming(opened));
  graph::write_incoming(opened, {.threads = 2}, meter);
  graph::write_incoming(opened, {.threads = 2}, meter);  // is there
  EXPECT_TRUE(graph::has_incoming(opened));
  const auto after = run_bfs(with(options<bfs_options>("host")));
  EXPECT_TRUE(after.verified.value_or(false)) << after.violation;
  EXPECT_GT(pulled(after), 0);
  EXPECT_EQ(after.reached, before.reached);
  EXPECT_LT(after.edges_traversed, before.edges_traversed);
  for (std::string const placement : {"host", "storage", "host-cached", "pinned"}) {
    const auto ranks = run_pagerank(with(options<pagerank_options>(placement)));
    EXPECT_TRUE(ranks.verified.value_or(false)) << placement << ": " << ranks.violation;
    EXPECT_EQ(ranks.iterations, pushed.iterations);
  }
  EXPECT_NE(said([&] { graph::write_incoming(graph::graph_folder::open(folder_ / "kron"), {}, meter); }), "");
  std::filesystem::remove_all(name + "/incoming");
  std::filesystem::copy(folder_ / "kron", name + "/incoming");
  EXPECT_NE(said([&] { run_bfs(with(options<bfs_options>("host"))); }).find("remove this folder"), std::string::npos);
}

TEST_F(analytics, what_does_not_fit_a_gpu_is_told_in_bytes) {
  EXPECT_EQ(missing_memory({.vertex_bytes = 100, .edge_bytes = 50}, 150), "");
  EXPECT_EQ(missing_memory({.vertex_bytes = 100, .edge_bytes = 51}, 150),
            "100 bytes for vertices and 51 for edges do not fit the GPU, which has 150 free: 1 are missing; choose placement "
            "host, or a smaller cache");
  EXPECT_NE(missing_memory({.vertex_bytes = 200, .edge_bytes = 0}, 150).find("50 are missing; choose executor cpu"),
            std::string::npos);
  const auto graph = graph::graph_folder::open(folder_ / "kron");
  auto with = options<graph_options>("hbm");
  EXPECT_EQ(needed_memory(with, graph, 12, false).vertex_bytes, (graph.vertices() + 1) * 8 + graph.vertices() * 12);
  EXPECT_EQ(needed_memory(with, graph, 12, true).edge_bytes, graph.edges() * 8);
  EXPECT_EQ(needed_memory(options<graph_options>("host"), graph, 12, true).edge_bytes, 0u);
  EXPECT_EQ(needed_memory(options<graph_options>("storage"), graph, 12, true).edge_bytes, with.cache_bytes);
}

TEST_F(analytics, strategies_are_verified_with_several_threads) {
  for (std::string const strategy : {"thread", "merged", "transposed(16)", "coarsened(4)", "tiled(256)", "tiled(64,search)",
                                     "frontier", "tiled_frontier(128)", "tiled_frontier(sort)"}) {
    SCOPED_TRACE(strategy);
    const auto with = [&](auto options) {
      options.strategy = strategy;
      return options;
    };
    expect_verified(run_bfs(with(options<bfs_options>("host"))));
    expect_verified(run_components(with(options<graph_options>("storage"))));
    expect_verified(run_pagerank(with(options<pagerank_options>("host"))));
    expect_verified(run_shortest_paths(with(options<paths_options>("storage"))));
  }
}

TEST_F(analytics, a_file_that_is_cut_short_meanwhile_is_told) {
  for (std::string const placement : {"host", "host-cached"}) {
    SCOPED_TRACE(placement);
    graph::progress_meter meter;
    std::string const name = folder_ / ("cut-" + placement);
    write_graph(graph::generator(graph::parse_generator("urand:12")), name, {.directed = true}, {}, meter);
    auto with = options<graph_options>(placement);
    with.graph = name;
    with.verify = false;
    with.progress = [&](std::string const& what, u64, u64) {
      if (what.starts_with("edges")) std::filesystem::resize_file(name + "/edges.npy", 8192);
    };
    try {
      run_components(with);
      ADD_FAILURE() << "edges were read that are not there";
    } catch (error const& e) {
      EXPECT_NE(std::string(e.what()).find("it has 8192 bytes"), std::string::npos) << e.what();
      EXPECT_EQ(e.kind(), error_kind::world);
    }
  }
}

TEST_F(analytics, references_tell_what_is_wrong) {
  const auto graph = graph::graph_folder::open(folder_ / "kron");
  graph::progress_meter meter;
  auto components = run_components(options<graph_options>("host"));
  components.labels[5] += 1;
  EXPECT_NE(graph::verify_components(graph, components.labels, meter), "");
  // All one label: neighbours agree, but the vertices do not hang together.
  EXPECT_NE(graph::verify_components(graph, std::vector<std::int64_t>(graph.vertices(), 0), meter), "");
  auto ranks = std::get<std::vector<float>>(run_pagerank(options<pagerank_options>("host")).ranks);
  ranks[7] += 0.01f;
  EXPECT_NE(graph::verify_pagerank(graph, {ranks.begin(), ranks.end()}, {}, meter).find("more than"), std::string::npos);
  auto paths = run_shortest_paths(options<paths_options>("host"));
  auto& distances = std::get<std::vector<std::int64_t>>(paths.distances);
  distances[paths.source] = 1;
  EXPECT_EQ(graph::verify_distances(graph, paths.source, distances, meter),
            "vertex " + std::to_string(paths.source) + " has distance 1, not 0");
  EXPECT_THROW(graph::verify_components(graph, {0}, meter), error);
}

TEST_F(analytics, runs_over_modelled_drives_are_verified) {
  const auto with = [&](auto options) {
    options.media = "gen5";
    options.drives = 2;
    options.media_place = "host";
    options.trials = 2;
    options.queues = 9;  // more than there are threads
    return options;
  };
  const auto search = run_bfs(with(options<bfs_options>("storage")));
  expect_verified(search);
  EXPECT_EQ(search.engine, "model server");
  EXPECT_EQ(search.drives, 2u);
  EXPECT_GT(search.media_bytes_per_second, 1e9);
  EXPECT_EQ(search.trial_seconds.size(), 2u);
  EXPECT_NE(search.trial_sources[0], search.trial_sources[1]);
  expect_verified(run_components(with(options<graph_options>("storage"))));
  expect_verified(run_pagerank(with(options<pagerank_options>("storage"))));
  expect_verified(run_shortest_paths(with(options<paths_options>("storage"))));
  EXPECT_THROW(run_bfs(with(options<bfs_options>("host"))), error);
  // Who stops a run in the middle of it leaves nothing that serves.
  auto stopped = with(options<bfs_options>("storage"));
  stopped.progress = [](std::string const& what, u64, u64) {
    if (what == "level 2") throw std::runtime_error("stopped");
  };
  EXPECT_THROW(run_bfs(stopped), std::runtime_error);
}

// One value is changed at a time: no check may let that pass.
TEST_F(analytics, no_wrong_value_goes_unseen) {
  const auto graph = graph::graph_folder::open(folder_ / "kron");
  graph::progress_meter meter;
  auto const offsets = graph.offsets();
  auto labels = run_components(options<graph_options>("host")).labels;
  auto search = run_bfs(options<bfs_options>("host"));
  std::vector<std::int32_t> parents(search.parents.begin(), search.parents.end());
  auto asked = options<paths_options>("host");
  asked.parents = true;
  auto paths = run_shortest_paths(asked);
  auto& distances = std::get<std::vector<std::int64_t>>(paths.distances);
  const auto refused_with = [](auto& value, auto other, auto const& verify) {
    const auto kept = std::exchange(value, static_cast<std::remove_reference_t<decltype(value)>>(other));
    EXPECT_NE(verify(), "");
    value = kept;
  };
  for (u64 v = 0; v < graph.vertices(); v += 37) {
    SCOPED_TRACE(v);
    const bool has_edges = offsets[v] != offsets[v + 1];
    const auto components = [&] { return graph::verify_components(graph, labels, meter); };
    refused_with(labels[v], labels[v] + 1, components);
    refused_with(labels[v], -1, components);
    const auto tree = [&] { return graph::verify_bfs(graph, search.source, std::span<std::int32_t const>(parents), meter); };
    refused_with(parents[v], parents[v] < 0 ? 0 : -1, tree);
    if (parents[v] >= 0) refused_with(parents[v], v == search.source ? v + 1 : v, tree);
    const auto ways = [&] { return graph::verify_distances(graph, paths.source, distances, meter); };
    refused_with(distances[v], distances[v] + 1, ways);
    const auto path_tree = [&] {
      return graph::verify_predecessors(graph, paths.source, distances, paths.predecessors, meter);
    };
    EXPECT_EQ(path_tree(), "");
    refused_with(paths.predecessors[v], paths.predecessors[v] < 0 ? 0 : -1, path_tree);
    if (distances[v] > 0) refused_with(paths.predecessors[v], v, path_tree);
    if (distances[v] >= 0) {
      refused_with(distances[v], distances[v] - 1, ways);
      if (has_edges) refused_with(distances[v], -1, ways);
    }
  }
}

// Distances over edges of no length hold each other up, whether a way leads there or not.
TEST_F(analytics, a_loop_of_no_length_is_no_way) {
  const std::vector<int> from{0, 2, 3}, to{1, 3, 2};
  const std::vector<u32> weights{5, 0, 0};
  graph::progress_meter meter;
  write_graph(graph::array_edges<int>(4, from, to, weights, graph::weight_type::int32, "edges"), folder_ / "loop",
              {.directed = true}, {}, meter);
  const auto loop = graph::graph_folder::open(folder_ / "loop");
  EXPECT_EQ(graph::verify_distances(loop, 0, std::vector<std::int64_t>{0, 5, -1, -1}, meter), "");
  EXPECT_NE(graph::verify_distances(loop, 0, std::vector<std::int64_t>{0, 5, 7, 7}, meter), "");
  // Against the order in which edges are read, and longer than anybody goes over them again and again.
  std::vector<int> before, after;
  for (int v = 30; v > 0; --v) {
    before.push_back(v == 30 ? 0 : v + 1);
    after.push_back(v);
  }
  write_graph(graph::array_edges<int>(31, before, after, std::vector<u32>(30, 0), graph::weight_type::int32, "edges"),
              folder_ / "chain", {.directed = true}, {}, meter);
  // Predecessors that go round in a circle, each by an edge that makes its distance.
  const std::vector<std::int64_t> distances{0, 5, 5, 5};
  write_graph(graph::array_edges<int>(4, std::vector<int>{0, 1, 2, 3}, std::vector<int>{1, 2, 3, 2},
                                      std::vector<u32>{5, 0, 0, 0}, graph::weight_type::int32, "edges"),
              folder_ / "round", {.directed = true}, {}, meter);
  const auto round = graph::graph_folder::open(folder_ / "round");
  EXPECT_EQ(graph::verify_predecessors(round, 0, distances, {0, 0, 1, 2}, meter), "");
  EXPECT_EQ(graph::verify_predecessors(round, 0, distances, {0, 0, 3, 2}, meter),
            "predecessors go round in a circle and do not lead to the source");
  const auto chain = graph::graph_folder::open(folder_ / "chain");
  EXPECT_EQ(graph::verify_distances(chain, 0, std::vector<std::int64_t>(31, 0), meter), "");
}

}  // namespace
}  // namespace penstock::analytics
