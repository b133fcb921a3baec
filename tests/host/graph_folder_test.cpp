// Graph folders: building, atomic creation, opening with all its checks, and the reference search.
#include "libs/graph/array_edges.hpp"
#include "libs/graph/bfs_reference.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "penstock/host/npy.hpp"
#include "tests/host/graph_test_support.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <algorithm>
#include <csignal>
#include <cstring>

namespace penstock::graph {
namespace {

std::vector<int> const path_from{0, 1, 2, 0}, path_to{1, 2, 3, 3};

/// 0 -> 1 -> 2 -> 3, 0 -> 3, and 4 alone, unless told otherwise.
void write_small(std::string const& target, build_options const& options = {}, std::vector<u32> const& weights = {}) {
  array_edges<int> const edges(5, path_from, path_to, weights, weights.empty() ? weight_type::none : weight_type::int32,
                               "edges");
  progress_meter meter;
  write_graph(edges, target, {.directed = !options.symmetrise, .source = "a \"test\""}, options, meter);
}

template <class T>
void write_array(std::string const& path, char kind, std::vector<T> const& values) {
  std::string bytes = make_npy_header(kind, sizeof(T), {values.size()});
  bytes.append(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T));
  put_file(path, bytes);
}

TEST(folder_writer, leaves_nothing_behind_when_stopped) {
  scratch_folder const scratch;
  int calls = 0;
  progress_meter meter([&](u64, u64) {
    if (++calls == 2) throw std::runtime_error("stop");
  });
  EXPECT_THROW(write_graph(generator(parse_generator("urand:16:32")), scratch / "g", {}, {.threads = 2}, meter),
               std::runtime_error);
  EXPECT_TRUE(scratch.empty());
}

TEST(folder_writer, leaves_nothing_behind_on_a_full_disk) {
  scratch_folder const scratch;
  // A limit on the size of files stands in for the disk: the write fails with EFBIG, like ENOSPC.
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit const small{100000, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  progress_meter meter;
  auto const said =
      complaint([&] { write_graph(generator(parse_generator("urand:14")), scratch / "g", {}, {}, meter); }, error_kind::world);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_TRUE(has(said, "write ") && has(said, "free space there or choose another folder")) << said;
  EXPECT_TRUE(scratch.empty());
}

TEST(folder_writer, says_when_the_place_cannot_be_written) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere; /proc is tried instead in the next test";
  scratch_folder const scratch;
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0500), 0);
  EXPECT_TRUE(has(complaint([&] { write_small(scratch / "g"); }, error_kind::world), "Permission denied"));
  ::chmod(scratch.path().c_str(), 0700);
}

TEST(folder_writer, says_when_the_file_system_takes_no_folders) {
  EXPECT_TRUE(has(complaint([] { write_small("/proc/penstock-graph"); }, error_kind::world), "create /proc/penstock-graph: "));
}

TEST(folder_writer, does_not_touch_what_exists) {
  scratch_folder const scratch;
  write_small(scratch / "g");
  EXPECT_TRUE(has(complaint([&] { write_small(scratch / "g"); }), "it exists already"));
}

TEST(folder_writer, removes_what_a_killed_process_left) {
  scratch_folder const scratch;
  pid_t const child = ::fork();
  if (child == 0) {
    folder_writer const writer(scratch / "g");
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(scratch.empty());
  write_small(scratch / "g");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(folder_writer, refuses_names_that_do_not_fit) {
  scratch_folder const scratch;
  array_edges<int> const edges(5, path_from, path_to, {}, weight_type::none, "edges");
  progress_meter meter;
  std::vector<std::string> names{"a", "b"};
  EXPECT_TRUE(
      has(complaint([&] { write_graph(edges, scratch / "g", {.names = names}, {}, meter); }), "2 names for 5 vertices"));
  names = {"a", "b\n", "c", "d", "e"};
  EXPECT_TRUE(has(complaint([&] { write_graph(edges, scratch / "g", {.names = names}, {}, meter); }), "newline"));
  names[1] = "b";
  write_graph(edges, scratch / "g", {.names = names}, {}, meter);
  EXPECT_EQ(file_content(graph_folder::open(scratch / "g").names_path()), "a\nb\nc\nd\ne\n");
}

class opened_graph : public ::testing::Test {
 protected:
  void SetUp() override { write_small(folder_); }
  std::string said(error_kind kind = error_kind::bad_input) const {
    return complaint([&] { graph_folder::open(folder_); }, kind);
  }
  std::string file(std::string const& name) const { return folder_ + "/" + name; }

  scratch_folder scratch_;
  std::string folder_ = scratch_ / "g";
};

TEST_F(opened_graph, knows_its_facts_and_its_files) {
  graph_folder const graph = graph_folder::open(folder_ + "/");
  EXPECT_EQ(graph.vertices(), 5u);
  EXPECT_EQ(graph.edges(), 4u);
  EXPECT_TRUE(graph.directed());
  EXPECT_EQ(graph.source(), "a \"test\"");
  EXPECT_EQ(graph.edges_place().path, file("edges.npy"));
  EXPECT_EQ(graph.edges_place().data_offset, 4096u);
  EXPECT_EQ(graph.edges_place().item_bytes, 4u);
  EXPECT_FALSE(graph.weights_place().has_value());
}

TEST_F(opened_graph, misses_files) {
  for (char const* name : {"edges.npy", "offsets.npy", "graph.json"}) {
    std::filesystem::rename(file(name), file("away"));
    EXPECT_TRUE(has(said(error_kind::world), std::string(name) + ": No such file")) << name;
    std::filesystem::rename(file("away"), file(name));
  }
}

TEST_F(opened_graph, refuses_truncated_files) {
  std::filesystem::resize_file(file("edges.npy"), 4096 + 13);
  EXPECT_TRUE(has(said(), "takes 4112 bytes with its header, the file has 4109: it is truncated"));
}

TEST_F(opened_graph, refuses_other_dtypes_and_shapes) {
  write_array<float>(file("edges.npy"), 'f', {1, 2, 3, 4});
  EXPECT_TRUE(has(said(), "float32, shape (4,): one dimension of int32 or int64 is needed"));
  write_array<std::int16_t>(file("edges.npy"), 'i', {1, 2, 3, 4});
  EXPECT_TRUE(has(said(), "int16"));
  put_file(file("edges.npy"), make_npy_header('i', 4, {2, 2}) + std::string(16, '\0'));
  EXPECT_TRUE(has(said(), "shape (2, 2)"));
  write_array<std::int32_t>(file("offsets.npy"), 'i', {0, 2, 3, 4, 4, 4});
  EXPECT_TRUE(has(said(), "int32, shape (6,): one dimension of uint64 is needed"));
}

TEST_F(opened_graph, refuses_counts_that_disagree) {
  write_array<int>(file("edges.npy"), 'i', {1, 3, 2});
  EXPECT_TRUE(has(said(), "edges.npy: has 3 values, the edges in graph.json need 4"));
  write_array<u64>(file("offsets.npy"), 'u', {0, 2, 3, 4, 4});
  EXPECT_TRUE(has(said(), "offsets.npy: has 5 values, the vertices in graph.json and the end of the last need 6"));
}

TEST_F(opened_graph, refuses_offsets_that_are_none) {
  write_array<u64>(file("offsets.npy"), 'u', {0, 3, 2, 4, 4, 4});
  EXPECT_TRUE(has(said(), "offsets.npy: goes backwards from vertex 1 (3) to the next (2)"));
  write_array<u64>(file("offsets.npy"), 'u', {1, 2, 3, 4, 4, 4});
  EXPECT_TRUE(has(said(), "starts at 1, not at 0"));
  write_array<u64>(file("offsets.npy"), 'u', {0, 2, 3, 4, 4, 9});
  EXPECT_TRUE(has(said(), "ends at 9, edges.npy has 4 edges"));
}

TEST_F(opened_graph, finds_edges_out_of_range_when_asked) {
  progress_meter meter;
  for (int bad : {5, -1}) {
    write_array<int>(file("edges.npy"), 'i', {1, 3, bad, 3});
    graph_folder const graph = graph_folder::open(folder_);
    std::string const expected = "edge 2 points to vertex " + std::to_string(bad) + ", the graph has 5";
    EXPECT_TRUE(has(complaint([&] { graph.validate_edges(2, meter); }), expected));
    EXPECT_TRUE(has(complaint([&] { bfs_depths(graph, 0, meter); }), expected));
  }
}

TEST_F(opened_graph, refuses_a_damaged_description) {
  for (auto const& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "where JSON needs one"},
           {"{\"format\": 2, \"vertices\": 5, \"edges\": 4, \"directed\": true}", "format 2"},
           {"{\"format\": 1, \"vertices\": -5, \"edges\": 4, \"directed\": true}", "\"vertices\" is -5, no whole number"},
           {"{\"format\": 1, \"vertices\": 5, \"directed\": true}", "\"edges\" is missing"},
           {"{\"format\": 1, \"vertices\": 5, \"edges\": 4, \"directed\": 1}", "neither true nor false"},
           {"{\"format\": 1, \"vertices\": 5, \"edges\": 4, \"directed\": true, \"names\": \"../x\"}", "same folder"},
           {"{\"format\": 1, \"vertices\": 18446744073709551615, \"edges\": 4, \"directed\": true}", "impossible number"},
           {"{\"format\": 1, \"vertices\": 5, \"edges\": 4, \"directed\": true, \"names\": \"n\"}", "is missing"},
           {"{\"format\": 1, \"vertices\": 5, \"edges\": 4, \"directed\": true, \"names\": 5}", "\"names\" is 5, no text"},
       }) {
    put_file(file("graph.json"), text);
    EXPECT_TRUE(has(said(), part)) << said();
  }
}

TEST_F(opened_graph, depths_count_edges_from_the_source) {
  progress_meter meter;
  graph_folder const graph = graph_folder::open(folder_);
  EXPECT_EQ(bfs_depths(graph, 0, meter), (std::vector<int>{0, 1, 2, 1, -1}));
  EXPECT_EQ(bfs_depths(graph, 2, meter), (std::vector<int>{-1, -1, 0, 1, -1}));
  EXPECT_TRUE(has(complaint([&] { bfs_depths(graph, 5, meter); }), "source 5 is no vertex: the graph has 5"));
}

TEST_F(opened_graph, verification_names_the_first_broken_rule) {
  progress_meter meter;
  graph_folder const graph = graph_folder::open(folder_);
  auto const verdict = [&](std::vector<std::int64_t> const& parents) {
    std::vector<int> const narrow(parents.begin(), parents.end());
    std::string const said = verify_bfs<std::int64_t>(graph, 0, parents, meter);
    EXPECT_EQ(verify_bfs<int>(graph, 0, narrow, meter), said);
    return said;
  };
  EXPECT_EQ(verdict({0, 0, 1, 0, -1}), "");
  EXPECT_EQ(verdict({1, 0, 1, 0, -1}), "the source 0 has parent 1, not itself");
  EXPECT_EQ(verdict({0, 0, 1, 2, -1}), "vertex 3 has parent 2 at depth 2, but lies at depth 1");
  EXPECT_EQ(verdict({0, 0, 3, 0, -1}), "vertex 2 has parent 3, but there is no edge from it");
  EXPECT_EQ(verdict({0, 0, -1, 0, -1}), "vertex 2 was not reached, but lies at depth 2");
  EXPECT_EQ(verdict({0, 0, 1, 0, 3}), "vertex 4 has parent 3, but cannot be reached from 0");
  EXPECT_EQ(verdict({0, 0, 1, 7, -1}), "vertex 3 has parent 7, which is no vertex");
  EXPECT_TRUE(has(complaint([&] { verdict({0, 0}); }), "2 parents for 5 vertices"));
}

TEST(bfs_reference, int64_ids_give_the_same_depths) {
  scratch_folder const scratch;
  progress_meter meter;
  generator const made(parse_generator("kron:13:4"));
  build_options options{.symmetrise = true, .drop_duplicates = true, .drop_self_loops = true};
  write_graph(made, scratch / "narrow", {.directed = false}, options, meter);
  options.wide_ids = true;
  write_graph(made, scratch / "wide", {.directed = false}, options, meter);
  graph_folder const narrow = graph_folder::open(scratch / "narrow"), wide = graph_folder::open(scratch / "wide");
  EXPECT_EQ(wide.edges_place().item_bytes, 8u);
  wide.validate_edges(2, meter);
  u64 source = 0;
  while (narrow.offsets()[source] == narrow.offsets()[source + 1]) ++source;
  auto const depths = bfs_depths(narrow, source, meter);
  EXPECT_EQ(bfs_depths(wide, source, meter), depths);
  std::vector<int> parents(depths.size(), -1);
  auto const edges = array_in<int>(scratch / "narrow/edges.npy");
  parents[source] = static_cast<int>(source);
  for (u64 u = 0; u < depths.size(); ++u)
    for (u64 i = narrow.offsets()[u]; i < narrow.offsets()[u + 1]; ++i)
      if (auto const v = static_cast<u64>(edges[i]); depths[u] >= 0 && depths[v] == depths[u] + 1)
        parents[v] = static_cast<int>(u);
  EXPECT_EQ(verify_bfs<int>(wide, source, parents, meter), "");
}

}  // namespace
}  // namespace penstock::graph
