// Graphs on a volume, searched where they lie.
#include "libs/volume/volume_graph.hpp"
#include "libs/analytics/analytics.hpp"
#include "libs/analytics/bfs.hpp"
#include "support/volume_files.hpp"

#include <gtest/gtest.h>

namespace penstock::volumes {
namespace {

using test_support::put_file;
using test_support::refusal_of;

class volume_graphs : public volume_files {
 protected:
  /// A graph, and its name on a volume.
  std::pair<std::string, std::string> put(layout_case const& how) const {
    const std::string path = folder_ / "g";
    graph::generator_spec spec = graph::parse_generator("kron:10:8");
    spec.weighted = true;
    graph::progress_meter silent;
    graph::write_graph(graph::generator(spec), path, {.directed = true}, {}, silent);
    volume to = make(how, 8 * mebibyte);
    import_entry(to, "social", path);
    std::string name = "volume:social@";
    for (u32 m = how.members; m-- > 0;) name += (m + 1 == how.members ? "" : ",") + names(how.members)[m];
    return {path, name};
  }

  static analytics::bfs_options options_of(std::string const& graph) {
    analytics::bfs_options options;
    options.graph = graph;
    options.executor = "cpu";
    options.threads = 2;
    options.cache_bytes = 64 << 10;
    options.source = 3;
    options.verify = true;
    return options;
  }
};

TEST_F(volume_graphs, are_searched_in_place_with_the_same_result) {
  const auto [path, name] = put({volume_layout::striped, 3, 16384});
  const auto found = analytics::run_bfs(options_of(name)), expected = analytics::run_bfs(options_of(path));
  EXPECT_EQ(found.verified, true) << found.violation;
  EXPECT_EQ(found.reached, expected.reached);
  EXPECT_EQ(found.levels, expected.levels);
  EXPECT_GT(found.reached, 100u);
  EXPECT_GT(found.bytes_moved, 0u);
  EXPECT_EQ(found.drives, 0u) << "none is modelled";
}

TEST_F(volume_graphs, have_weights) {
  const auto [path, name] = put({volume_layout::replicated, 2, 65536});
  analytics::paths_options options;
  static_cast<analytics::graph_options&>(options) = options_of(name);
  options.source = 3;
  options.cache_bytes = 128 << 10;
  const auto found = analytics::run_shortest_paths(options);
  EXPECT_EQ(found.verified, true) << found.violation;
}

TEST_F(volume_graphs, read_as_the_folders_that_they_were) {
  const auto [path, name] = put({volume_layout::single, 1, 65536});
  const auto found = open_graph(name), expected = graph::graph_folder::open(path);
  EXPECT_EQ(found.vertices(), expected.vertices());
  EXPECT_TRUE(std::ranges::equal(found.offsets(), expected.offsets()));
  EXPECT_EQ(found.names_path(), "");
  graph::edge_reader<std::int32_t> a(found), b(expected);
  for (u64 first = 0; first + 777 < found.edges(); first += 501) {
    EXPECT_TRUE(std::ranges::equal(a.read(first, first + 777, false), b.read(first, first + 777, false)));
  }
  graph::progress_meter silent;
  found.validate_edges(2, silent);
}

TEST_F(volume_graphs, are_refused_in_one_sentence) {
  const auto [path, name] = put({volume_layout::striped, 2, 16384});
  {
    volume to = open(names(2), access::write);
    put_file(folder_ / "in", "x");
    import_entry(to, "data", folder_ / "in");
  }
  const auto raised = [&](std::string const& graph, std::function<void(analytics::bfs_options&)> const& change) {
    auto options = options_of(graph);
    change(options);
    return refusal_of(error_kind::bad_input, [&] { analytics::run_bfs(options); });
  };
  const auto as_it_is = [](analytics::bfs_options&) {};
  EXPECT_NE(raised(name, [](auto& o) { o.placement = "host"; }).find("choose placement storage, or export it"),
            std::string::npos);
  EXPECT_NE(raised(name, [](auto& o) { o.media = "p5800x"; }).find("choose placement storage, or export it"),
            std::string::npos);
  EXPECT_NE(raised(name, [](auto& o) { o.line_bytes = 32768; }).find("stripes of 16384 bytes"), std::string::npos);
  EXPECT_EQ(raised("volume:social", as_it_is), "open volume:social: no members are named: write volume:NAME@MEMBER,MEMBER");
  EXPECT_EQ(raised("volume:social@", as_it_is), "open volume:social@: a member has no name: write volume:NAME@MEMBER,MEMBER");
  EXPECT_EQ(raised("volume:x@,a", as_it_is), "open volume:x@,a: a member has no name: write volume:NAME@MEMBER,MEMBER");
  EXPECT_EQ(raised("volume:x@a,", as_it_is), "open volume:x@a,: a member has no name: write volume:NAME@MEMBER,MEMBER");
  EXPECT_EQ(raised("volume:@a", as_it_is), "open volume:@a: the entry has no name: write volume:NAME@MEMBER,MEMBER");
  EXPECT_NE(raised("volume:data@" + name.substr(name.find('@') + 1), as_it_is).find("data is no graph"), std::string::npos);
  EXPECT_NE(raised("volume:social@" + names(2)[0], as_it_is).find("these are missing: 1"), std::string::npos);
}

}  // namespace
}  // namespace penstock::volumes
