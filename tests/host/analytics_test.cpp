// Whole runs of the algorithms over graphs, by several threads, through small caches and in place.
#include "apps/analytics/analytics.hpp"
#include "apps/bfs/bfs.hpp"
#include "apps/graph/analytics_reference.hpp"
#include "apps/graph/folder_writer.hpp"
#include "apps/graph/generator.hpp"
#include "graph_test_support.hpp"

namespace penstock::apps {
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
    EXPECT_EQ(cost.evictions > 0, cost.placement == "storage");
    EXPECT_EQ(cost.bytes_moved > 0, cost.placement == "storage");
  }

  graph::scratch_folder folder_;
};

TEST_F(analytics, runs_are_verified_wherever_edges_lie) {
  for (std::string const placement : {"storage", "host"}) {
    SCOPED_TRACE(placement);
    expect_verified(run_bfs(options<bfs_options>(placement)));
    expect_verified(run_components(options<graph_options>(placement)));
    expect_verified(run_pagerank(options<pagerank_options>(placement)));
    expect_verified(run_shortest_paths(options<paths_options>(placement)));
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
            "vertex " + std::to_string(paths.source) + " has distance 1, not 0.000000");
  EXPECT_THROW(graph::verify_components(graph, {0}, meter), error);
}

}  // namespace
}  // namespace penstock::apps
