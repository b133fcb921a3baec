// The builder of CSR folders: what becomes of the edges, in how much memory, and its parts.
#include "libs/graph/array_edges.hpp"
#include "libs/graph/bucket_sort.hpp"
#include "libs/graph/folder_edges.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/graph/graph_file.hpp"
#include "libs/graph/graph_folder.hpp"
#include "libs/graph/vertex_bins.hpp"
#include "tests/host/graph_test_support.hpp"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <random>
#include <set>

namespace penstock::graph {
namespace {

constexpr build_options simple{.symmetrise = true, .drop_duplicates = true, .drop_self_loops = true};

TEST(csr_builder, sorts_lists_and_counts_them) {
  scratch_folder const scratch;
  std::vector<int> const from{0, 1, 2, 0}, to{1, 2, 3, 3};
  std::vector<u32> const weights{10, 20, 30, 40};
  progress_meter meter;
  write_graph(array_edges<int>(5, from, to, weights, weight_type::int32, "edges"), scratch / "g", {}, {}, meter);
  EXPECT_EQ(array_in<u64>(scratch / "g/offsets.npy"), (std::vector<u64>{0, 2, 3, 4, 4, 4}));
  EXPECT_EQ(array_in<int>(scratch / "g/edges.npy"), (std::vector<int>{1, 3, 2, 3}));
  EXPECT_EQ(array_in<int>(scratch / "g/weights.npy"), (std::vector<int>{10, 40, 20, 30}));
}

TEST(csr_builder, symmetrises_and_drops_what_it_is_told_to) {
  scratch_folder const scratch;
  std::vector<int> const from{0, 0, 1, 2, 2}, to{1, 1, 0, 2, 0};
  std::vector<u32> const weights{9, 3, 7, 1, 4};
  array_edges<int> const edges(3, from, to, weights, weight_type::int32, "edges");
  progress_meter meter;
  write_graph(edges, scratch / "g", {.directed = false}, {.symmetrise = true, .drop_duplicates = true, .drop_self_loops = true},
              meter);
  EXPECT_EQ(array_in<u64>(scratch / "g/offsets.npy"), (std::vector<u64>{0, 2, 3, 4}));
  EXPECT_EQ(array_in<int>(scratch / "g/edges.npy"), (std::vector<int>{1, 2, 0, 0}));
  EXPECT_EQ(array_in<int>(scratch / "g/weights.npy"), (std::vector<int>{3, 4, 3, 4}));
  write_graph(edges, scratch / "kept", {}, {}, meter);
  EXPECT_EQ(array_in<int>(scratch / "kept/edges.npy"), (std::vector<int>{1, 1, 0, 0, 2}));
}

/// What is said of edges that are called undirected, as they are.
template <class Id>
std::string one_way(std::vector<Id> const& from, std::vector<Id> const& to, std::vector<u32> const& weights = {},
                    weight_type type = weight_type::none, build_options const& options = {}) {
  scratch_folder const scratch;
  progress_meter meter;
  array_edges<Id> const edges(9, from, to, weights, type, "edges");
  return complaint([&] { write_graph(edges, scratch / "g", {.directed = false, .source = "a.el"}, options, meter); });
}

TEST(csr_builder, names_the_edge_of_an_undirected_graph_that_goes_one_way) {
  using ids = std::vector<int>;
  EXPECT_EQ(one_way(ids{3, 5, 5, 3, 2}, ids{5, 3, 8, 3, 2}),
            "read a.el: an undirected graph has each edge both ways, but 5 -> 8 is not there the other way round: add it, or "
            "take each edge both ways (undirected; for arrays symmetrise)");
  EXPECT_TRUE(has(one_way(ids{8}, ids{5}), "but 8 -> 5 is"));
  EXPECT_TRUE(has(one_way(std::vector<std::int64_t>{8}, std::vector<std::int64_t>{5}), "but 8 -> 5 is"));
  // Twice there, once back; and with another weight.
  EXPECT_TRUE(has(one_way(ids{1, 1, 4}, ids{4, 4, 1}), "but 1 -> 4 is"));
  EXPECT_TRUE(has(one_way(ids{1, 4}, ids{4, 1}, {7, static_cast<u32>(-2)}, weight_type::int32), "but 1 -> 4 (weight 7) is"));
  EXPECT_TRUE(has(one_way(ids{4}, ids{1}, {std::bit_cast<u32>(2.5f)}, weight_type::float32), "4 -> 1 (weight 2.500000) is"));
  EXPECT_TRUE(has(one_way(ids{1, 1, 4, 5}, ids{4, 4, 1, 4}, {}, weight_type::none, {.drop_duplicates = true}), "5 -> 4 is"));
}

TEST(csr_builder, takes_an_undirected_graph_whose_edges_go_both_ways) {
  scratch_folder const scratch;
  progress_meter meter;
  std::vector<int> const from{1, 1, 4, 0}, to{4, 4, 1, 0};
  array_edges<int> const edges(9, from, to, {}, weight_type::none, "edges");
  // Equal ones dropped, what is left goes both ways; else it does once each is turned round.
  write_graph(edges, scratch / "unique", {.directed = false}, {.drop_duplicates = true}, meter);
  write_graph(edges, scratch / "turned", {.directed = false}, {.symmetrise = true}, meter);
  EXPECT_EQ(array_in<int>(scratch / "unique/edges.npy"), (std::vector<int>{0, 4, 1}));
  generator_spec spec = parse_generator("kron:10");
  spec.weighted = true;
  write_graph(generator(spec), scratch / "kron", {.directed = false}, simple, meter);
  graph_file const again = open_graph_file(scratch / "kron", "folder", 2, meter);
  write_graph(*again.edges, scratch / "copy", {.directed = again.directed}, {}, meter);
  EXPECT_EQ(file_content(scratch / "copy/weights.npy"), file_content(scratch / "kron/weights.npy"));
  EXPECT_EQ(one_way_edge(graph_folder::open(scratch / "copy"), 2, meter), "");
}

TEST(csr_builder, writes_the_same_bytes_for_any_threads_and_budget) {
  scratch_folder const scratch;
  progress_meter meter;
  generator_spec spec = parse_generator("kron:12");
  spec.weighted = true;
  std::set<std::string> edges, offsets, weights;
  for (unsigned threads : {1u, 2u, 7u})
    for (u64 budget : {u64{1} << 30, u64{4096}}) {
      build_options options{.symmetrise = true, .drop_duplicates = true, .drop_self_loops = true};
      options.threads = threads;
      options.budget_bytes = budget;
      std::string const target = scratch / ("g" + std::to_string(threads) + "-" + std::to_string(budget));
      write_graph(generator(spec), target, {.directed = false}, options, meter);
      edges.insert(file_content(target + "/edges.npy"));
      offsets.insert(file_content(target + "/offsets.npy"));
      weights.insert(file_content(target + "/weights.npy"));
    }
  EXPECT_EQ(edges.size(), 1u);
  EXPECT_EQ(offsets.size(), 1u);
  EXPECT_EQ(weights.size(), 1u);
}

TEST(csr_builder, agrees_with_sets_of_edges) {
  for (char const* text : {"kron:12", "urand:12"}) {
    scratch_folder const scratch;
    generator const made(parse_generator(text));
    std::set<std::pair<u64, u64>> expected;
    for (auto const& [from, to, weight] : edges_of(made))
      if (from != to) expected.insert({from, to}), expected.insert({to, from});
    progress_meter meter;
    write_graph(made, scratch / "g", {.directed = false},
                {.symmetrise = true, .drop_duplicates = true, .drop_self_loops = true}, meter);
    graph_folder const graph = graph_folder::open(scratch / "g");
    auto const edges = array_in<int>(scratch / "g/edges.npy");
    std::vector<std::pair<u64, u64>> found;
    for (u64 v = 0; v < graph.vertices(); ++v)
      for (u64 i = graph.offsets()[v]; i < graph.offsets()[v + 1]; ++i) found.emplace_back(v, static_cast<u64>(edges[i]));
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
  }
}

TEST(csr_builder, refuses_more_vertices_than_memory_holds) {
  scratch_folder const scratch;
  std::vector<std::int64_t> const from{0}, to{(std::int64_t{1} << 40) - 1};
  array_edges<std::int64_t> const edges(u64{1} << 40, from, to, {}, weight_type::none, "edges");
  progress_meter meter;
  auto const said = complaint([&] { write_graph(edges, scratch / "g", {}, {}, meter); }, error_kind::world);
  EXPECT_TRUE(has(said, "1099511627776 vertices need 8 bytes of memory each; the machine has"));
  EXPECT_TRUE(scratch.empty());
}

TEST(csr_builder, keeps_equal_edges_in_order_of_weight) {
  scratch_folder const scratch;
  std::vector<int> const from(300, 1), to(300, 0);
  std::vector<u32> weights;
  for (u32 i = 0; i < 300; ++i) weights.push_back(i * 7919 % 300);
  progress_meter meter;
  write_graph(array_edges<int>(2, from, to, weights, weight_type::int32, "edges"), scratch / "g", {}, {}, meter);
  std::sort(weights.begin(), weights.end());
  EXPECT_EQ(array_in<u32>(scratch / "g/weights.npy"), weights);
}

TEST(csr_builder, sorts_a_list_that_is_longer_than_the_scratch_of_a_thread) {
  constexpr u64 leaves = 300000;
  scratch_folder const scratch;
  std::vector<int> from(leaves, 7), to;
  for (u64 i = 0; i < leaves; ++i) to.push_back(static_cast<int>((i * 7919 + 1) % leaves) + 8);
  progress_meter meter;
  write_graph(array_edges<int>(leaves + 8, from, to, {}, weight_type::none, "star"), scratch / "g", {}, simple, meter);
  graph_folder const graph = graph_folder::open(scratch / "g");
  ASSERT_EQ(graph.edges(), 2 * leaves);
  EXPECT_EQ(graph.offsets()[7], 0u);
  EXPECT_EQ(graph.offsets()[8], leaves);
  auto const edges = array_in<int>(scratch / "g/edges.npy");
  for (u64 i = 0; i < leaves; ++i) {
    ASSERT_EQ(edges[i], static_cast<int>(i + 8));
    ASSERT_EQ(edges[leaves + i], 7);
  }
}

/// Answers another time with other edges, as a file does that is written to.
class fickle_edges final : public edge_source {
 public:
  explicit fickle_edges(int change) : change_(change) {}

  u64 vertices() const override { return 4; }
  weight_type weights() const override { return weight_type::none; }
  u64 blocks() const override { return 1; }
  void produce(u64, edge_sink const& sink) const override {
    std::vector<edge> edges(40, edge{1, 2, 0});
    if (asked_++ > 0) edges.resize(static_cast<std::size_t>(40 + change_), edge{change_ == 0 ? u64{9} : u64{1}, 2, 0});
    if (asked_ > 1 && change_ == 0) edges.back().to = 4;
    sink(edges);
  }

 private:
  int change_;
  mutable std::atomic<int> asked_{0};
};

TEST(csr_builder, notices_an_input_that_changed) {
  for (int change : {-1, 1, 30, 0}) {
    scratch_folder const scratch;
    progress_meter meter;
    auto const said = complaint([&] { write_graph(fickle_edges(change), scratch / "g", {}, {}, meter); }, error_kind::world);
    EXPECT_TRUE(has(said, "the input changed while it was read")) << change;
  }
}

TEST(csr_builder, says_how_much_memory_is_enough) {
  scratch_folder const scratch;
  progress_meter meter;
  generator const made(parse_generator("urand:16:32"));
  build_options options = simple;
  options.memory_limit = u64{4} << 20;
  auto const said = complaint([&] { write_graph(made, scratch / "g", {}, options, meter); });
  EXPECT_TRUE(has(said, "a memory limit of 4 MiB is too small for 65536 vertices")) << said;
  EXPECT_TRUE(has(said, "give at least 21 MiB"));
  options.memory_limit = u64{21} << 20;
  write_graph(made, scratch / "g", {}, options, meter);
  write_graph(made, scratch / "at once", {}, simple, meter);
  EXPECT_EQ(file_content(scratch / "g/edges.npy"), file_content(scratch / "at once/edges.npy"));

  std::vector<int> const from(3 << 20, 1), to(3 << 20, 0);
  array_edges<int> const hub(2, from, to, {}, weight_type::none, "hub");
  auto const longest = complaint([&] { write_graph(hub, scratch / "hub", {}, options, meter); });
  EXPECT_TRUE(has(longest, "the longest of their lists: give at least 37 MiB")) << longest;
  options.memory_limit = u64{37} << 20;
  write_graph(hub, scratch / "hub", {}, options, meter);
}

/// A line of /proc/self/status, in bytes.
u64 memory_line(std::string const& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (u64 kib = 0; word == name && status >> kib) return kib << 10;
  return 0;
}

/// By how much memory a process grows that does `run`, at most; 0 when it failed.
template <class Run>
u64 growth(Run const& run) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  pid_t const child = ::fork();
  if (child == 0) {
    ::malloc_trim(0);  // what the tests before have freed would be taken again without being seen
    put_file("/proc/self/clear_refs", "5");
    u64 const before = memory_line("VmRSS:");
    run();
    u64 const grown = memory_line("VmHWM:") - before;
    ::_exit(::write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  ::close(ends[1]);
  u64 grown = 0;
  if (::read(ends[0], &grown, sizeof grown) != sizeof grown) grown = 0;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return grown;
}

TEST(csr_builder, stays_within_its_memory_limit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  generator_spec spec = parse_generator("urand:16:100");
  for (bool weighted : {false, true}) {
    spec.weighted = weighted;
    generator const made(spec);
    u64 const limit = (weighted ? u64{64} : u64{32}) << 20;
    u64 const grown = growth([&] {
      scratch_folder const scratch;
      progress_meter meter;
      build_options options = simple;
      options.memory_limit = limit;
      options.threads = 3;
      write_graph(made, scratch / "g", {.directed = false}, options, meter);
    });
    EXPECT_LE(grown, limit);
    EXPECT_GE(grown, limit / 2);
  }
}

TEST(vertex_bins, cuts_passes_that_fit_and_leaves_no_vertex_out) {
  for (u64 vertices : {u64{1}, u64{5}, u64{20000}, u64{1} << 20}) {
    vertex_bins bins(vertices);
    std::vector<u64> edges;
    for (u64 bin = 0; bin < bins.count(); ++bin) edges.push_back(bin % 3 == 0 ? 0 : bin % 1000);
    bins.add(edges);
    ASSERT_EQ(bins.of(vertices - 1), bins.count() - 1);
    for (u64 most : {u64{5000}, u64{1} << 40}) {
      u64 total = 0, vertex = 0;
      for (bin_range const& range : bins.passes(most)) {
        EXPECT_LE(range.edges, std::max(most, bins.largest()));
        bucket_pass const pass = bins.buckets(range);
        u64 begin = 0;
        for (bucket const& b : pass.buckets) {
          ASSERT_EQ(std::exchange(vertex, b.last), b.first);
          ASSERT_EQ(std::exchange(begin, b.end), b.begin);
          ASSERT_EQ(&pass.buckets[pass.bucket_of[bins.of(b.first)]], &b);
          ASSERT_EQ(&pass.buckets[pass.bucket_of[bins.of(b.last - 1)]], &b);
        }
        EXPECT_EQ(begin, range.edges);
        total += begin;
      }
      EXPECT_EQ(total, bins.total());
      EXPECT_EQ(vertex, vertices);
    }
  }
}

TEST(vertex_bins, no_bucket_is_wider_than_a_packed_edge_can_tell) {
  constexpr u64 vertices = u64{1} << 36;
  vertex_bins const bins(vertices);
  for (bucket const& b : bins.buckets(bins.passes(1)[0]).buckets) ASSERT_LE(b.last - b.first, widest_bucket(vertices));
}

template <class Entry>
void expect_sorted(u64 count, u64 scratch_count, u32 to_bits, u64 first, u64 width) {
  std::mt19937_64 random(count);
  std::vector<Entry> entries, scratch(scratch_count);
  std::vector<std::pair<u64, u64>> expected;
  for (u64 i = 0; i < count; ++i) {
    edge const e{first + random() % width, random() >> (64 - to_bits), 0};
    entries.push_back(Entry::of(e, to_bits));
    expected.emplace_back(e.from, e.to);
  }
  std::sort(expected.begin(), expected.end());
  u64 const base = first << to_bits;
  bucket_sorter<Entry>(scratch, base, to_bits + id_bits(width)).sort(entries);
  for (u64 i = 0; i < count; ++i) {
    u64 const place = entries[i].key() - base;
    ASSERT_EQ(first + (place >> to_bits), expected[i].first);
    ASSERT_EQ(place & ((u64{1} << to_bits) - 1), expected[i].second);
  }
}

TEST(bucket_sorter, sorts_by_both_ends_also_where_the_upper_bits_of_the_first_are_lost) {
  for (u64 scratch : {0, 10000})
    for (auto const& [to_bits, first, width] : std::vector<std::tuple<u32, u64, u64>>{
             {1, 0, 2}, {12, 100, 1}, {25, 1 << 20, 4096}, {32, 7, u64{1} << 31}, {36, (u64{1} << 35) - 1000, u64{1} << 28}}) {
      expect_sorted<packed_edge>(10000, scratch, to_bits, first, width);
      expect_sorted<packed_weighted_edge>(9999, scratch, to_bits, first, width);
    }
}

}  // namespace
}  // namespace penstock::graph
