// Generators and readers: which edges they make of what, and what they say to bad input.
#include "libs/graph/gap_serialized.hpp"
#include "libs/graph/generator.hpp"
#include "libs/graph/text_edge_list.hpp"
#include "tests/host/graph_test_support.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

namespace penstock::graph {
namespace {

u64 checksum(edge_source const& source) {
  u64 sum = 0;
  for (auto const& [from, to, weight] : edges_of(source))
    sum = (std::rotl(sum, 5) ^ (from << 32 | to)) * 0x9e3779b97f4a7c15 + weight;
  return sum;
}

TEST(generator, makes_the_same_edges_for_ever) {
  EXPECT_EQ(checksum(generator(parse_generator("kron:12"))), 3808490567051596496u);
  EXPECT_EQ(checksum(generator(parse_generator("urand:12"))), 11456468184162611765u);
  EXPECT_EQ(checksum(generator(parse_generator("social:12"))), 563303155424614031u);
  generator_spec weighted = parse_generator("kron:12");
  weighted.weighted = true;
  EXPECT_EQ(checksum(generator(weighted)), 12007088112628925354u);
}

TEST(generator, blocks_do_not_depend_on_each_other) {
  generator const made(parse_generator("urand:16:9"));
  ASSERT_EQ(made.blocks(), 3u);
  auto const all = edges_of(made);
  ASSERT_EQ(all.size(), 9u << 16);
  std::vector<plain_edge> last;
  made.produce(2, [&](std::span<edge const> edges) {
    for (edge const& e : edges) last.emplace_back(e.from, e.to, e.weight);
  });
  EXPECT_TRUE(std::equal(last.begin(), last.end(), all.begin() + (2 << 18), all.end()));
}

TEST(generator, weights_are_uniform_from_1_to_255_and_leave_the_edges_alone) {
  generator_spec spec = parse_generator("kron:14");
  auto const plain = edges_of(generator(spec));
  spec.weighted = true;
  auto const weighted = edges_of(generator(spec));
  std::vector<u64> histogram(256);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    auto const [from, to, weight] = weighted[i];
    ASSERT_EQ(plain[i], plain_edge(from, to, 0));
    ASSERT_TRUE(weight >= 1 && weight <= 255);
    ++histogram[weight];
  }
  double const expected = static_cast<double>(plain.size()) / 255, slack = 6 * std::sqrt(expected);
  for (u32 w = 1; w <= 255; ++w) EXPECT_NEAR(static_cast<double>(histogram[w]), expected, slack) << w;
}

TEST(generator, kron_follows_the_probabilities_of_its_quadrants) {
  generator_spec spec = parse_generator("kron:1:4096");
  double share[2][2] = {};
  u64 edges = 0;
  // At scale 1 the permutation is either the identity or a swap; A is the largest quadrant on the diagonal.
  for (spec.seed = 1; spec.seed <= 64; ++spec.seed) {
    id_permutation const permute(1, spec.seed);
    u64 const zero = permute(0);
    for (auto const& [from, to, weight] : edges_of(generator(spec))) ++share[from ^ zero][to ^ zero], ++edges;
  }
  double const n = static_cast<double>(edges);
  EXPECT_NEAR(share[0][0] / n, 0.57, 0.005);
  EXPECT_NEAR(share[0][1] / n, 0.19, 0.005);
  EXPECT_NEAR(share[1][0] / n, 0.19, 0.005);
  EXPECT_NEAR(share[1][1] / n, 0.05, 0.005);
}

TEST(generator, social_has_the_degrees_of_friendster) {
  generator const made(parse_generator("social:16"));
  std::vector<double> degrees(made.vertices());
  for (auto const& [from, to, weight] : edges_of(made)) ++degrees[from], ++degrees[to];
  std::sort(degrees.begin(), degrees.end());
  double const vertices = static_cast<double>(degrees.size()), mean = 2.0 * static_cast<double>(made.edges()) / vertices;
  EXPECT_EQ(mean, 54);
  EXPECT_NEAR(degrees.back() / mean, 94.7, 5);
  EXPECT_NEAR(degrees[degrees.size() / 2] / mean, 0.49, 0.03);
  // The lowest expected degree is 15.8: none of 2^16 vertices is left alone.
  EXPECT_GE(degrees.front(), 1);
  // (4 t (y1 - y0))^(-4/3) - i0 / n of the vertices have more than t times the mean, where y1 - y0 is 0.8545.
  auto const above = [&](double times) {
    return static_cast<double>(degrees.end() - std::upper_bound(degrees.begin(), degrees.end(), times * mean));
  };
  EXPECT_NEAR(above(1) / vertices, 0.1938, 0.005);
  EXPECT_NEAR(above(10) / vertices, 0.0086, 0.001);
}

TEST(generator, permutes_ids_without_collision) {
  for (u32 scale : {1u, 2u, 3u, 7u, 16u}) {
    id_permutation const permute(scale, 3);
    std::set<u64> seen;
    for (u64 id = 0; id < u64{1} << scale; ++id) seen.insert(permute(id));
    EXPECT_EQ(seen.size(), u64{1} << scale);
    EXPECT_LT(*seen.rbegin(), u64{1} << scale);
  }
}

TEST(generator, refuses_other_specs) {
  for (char const* text : {"kron", "kron:", "kron:0", "kron:41", "kron:5:", "kron:5:0", "kron:5:5000", "kron:5:16:1", "kron:-3",
                           "kron:5x", "Kron:5", "rmat:5", "urand: 5"})
    EXPECT_TRUE(has(complaint([&] { parse_generator(text); }), "SCALE[:DEGREE]")) << text;
  EXPECT_EQ(to_string(parse_generator("urand:7")), "urand:7:16");
  EXPECT_EQ(to_string(parse_generator("social:7")), "social:7:27");
  EXPECT_EQ(to_string(parse_generator("social:7:16")), "social:7:16");
}

text_edge_list read_text(std::string const& text, bool weighted = false, u64 block_bytes = 1 << 20, unsigned threads = 1,
                         text_layout const& layout = {}) {
  progress_meter meter;
  text_dialect const dialect = weighted ? text_dialect::wel : text_dialect::el;
  return text_edge_list(byte_input(std::as_bytes(std::span(text)), "x.el"), dialect, threads, meter, block_bytes, layout);
}

TEST(text_edge_list, reads_edges_between_comments) {
  std::string const text = "# SNAP\r\n% too\n0 1\n\n \t2\t0  \r\n1 1";
  EXPECT_EQ(edges_of(read_text(text)), (std::vector<plain_edge>{{0, 1, 0}, {2, 0, 0}, {1, 1, 0}}));
  EXPECT_EQ(read_text(text).vertices(), 3u);
}

TEST(text_edge_list, begins_behind_the_mark_of_utf_8) {
  for (u64 block_bytes : {1u, 2u, 7u, 64u})
    EXPECT_EQ(edges_of(read_text("\xef\xbb\xbf"
                                 "0 1\n1 2\n",
                                 false, block_bytes)),
              (std::vector<plain_edge>{{0, 1, 0}, {1, 2, 0}}));
}

TEST(text_edge_list, takes_the_columns_that_are_named) {
  std::string const text = "t,to,from,cost\n9,1,2,0.5\n8, 3 ,1 ,2\n", plain = "9 1 2 0.5\n8 3\t1 2 more\n";
  std::vector<plain_edge> const expected{{2, 1, std::bit_cast<u32>(0.5f)}, {1, 3, std::bit_cast<u32>(2.0f)}};
  text_layout const named{.separator = ',', .header = true, .columns = {"from", "to", "cost"}};
  for (u64 block_bytes : {1u, 3u, 7u, 1000u}) {
    EXPECT_EQ(edges_of(read_text(text, false, block_bytes, 2, named)), expected);
    EXPECT_EQ(edges_of(read_text(plain, false, block_bytes, 2, {.columns = {"2", "1", "3"}})), expected);
  }
  EXPECT_EQ(read_text(text, false, 64, 1, named).reading(), "2 rows: source 'from', target 'to', weight 'cost' (float32)");
  EXPECT_EQ(edges_of(read_text(text, false, 64, 1, {.separator = ',', .header = true, .columns = {"2", "to"}})).size(), 2u);
  auto const said = [&](text_layout const& layout) { return complaint([&] { read_text(text, false, 64, 1, layout); }); };
  EXPECT_TRUE(has(said({.separator = ',', .header = true, .columns = {"x", "to"}}), "no column 'x' among t, to, from, cost"));
  EXPECT_TRUE(has(said({.separator = ',', .columns = {"x", "to"}}), "no column 'x': name columns by their number from 0"));
  EXPECT_TRUE(has(said({.separator = ',', .header = true, .columns = {"0", "9"}}), "line 2: two vertex numbers are needed"));
  EXPECT_TRUE(has(complaint([] { read_text("0,,1\n", false, 64, 1, {.separator = ','}); }), "line 1: '' is no vertex number"));
}

TEST(text_edge_list, counts_from_the_first_id) {
  std::string const text = "1 3\n2 1\n";
  text_edge_list const list = read_text(text, false, 64, 1, {.first_id = 1});
  EXPECT_EQ(edges_of(list), (std::vector<plain_edge>{{0, 2, 0}, {1, 0, 0}}));
  EXPECT_EQ(list.vertices(), 3u);
  EXPECT_TRUE(list.names().empty());
  EXPECT_TRUE(has(complaint([] { read_text("0 1\n", false, 64, 1, {.first_id = 1}); }), "'0' is no vertex number from 1 to"));
}

TEST(text_edge_list, numbers_ids_with_wide_gaps_and_keeps_them_as_names) {
  std::string const text = "100000000 7\n7 1099511627775\n";
  for (u64 block_bytes : {1u, 7u, 1000u}) {
    text_edge_list const list = read_text(text, false, block_bytes, 2);
    EXPECT_EQ(list.vertices(), 3u);
    EXPECT_EQ(list.names(), (std::vector<std::string>{"7", "100000000", "1099511627775"}));
    EXPECT_EQ(edges_of(list), (std::vector<plain_edge>{{1, 0, 0}, {0, 2, 0}}));
    EXPECT_EQ(list.held_bytes(), 24u);
  }
  EXPECT_EQ(read_text("0 1023\n").vertices(), 1024u);
  EXPECT_EQ(read_text("0 1024\n").vertices(), 2u);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "0 1\n";
  EXPECT_EQ(read_text(many + "0 1607\n").vertices(), 1608u);  // eight numbers for each edge are kept
  EXPECT_EQ(read_text(many + "0 1616\n").vertices(), 3u);
  text_edge_list const always = read_text("1 15\n15 3\n", false, 64, 1, {.first_id = 1, .renumber = renumbering::always});
  EXPECT_EQ(always.names(), (std::vector<std::string>{"1", "3", "15"}));
  EXPECT_TRUE(read_text("0 1\n2 1\n", false, 64, 1, {.renumber = renumbering::always}).names().empty());
  EXPECT_EQ(read_text("0 99\n", false, 64, 1, {.renumber = renumbering::never}).vertices(), 100u);
  // Hashes and addresses are ids, too, also as many as would be dense of small ones.
  std::string hashes;
  for (int k = 0; k < 2000; ++k) hashes += "9223372036854775807 1152921504606846976\n";
  EXPECT_EQ(read_text(hashes).names(), (std::vector<std::string>{"1152921504606846976", "9223372036854775807"}));
}

TEST(text_edge_list, does_not_depend_on_blocks_or_threads) {
  std::string text = "# start\n";
  for (u64 i = 0; i < 500; ++i)
    text += std::to_string(i * 7919 % 1000) + " " + std::to_string(i) + (i % 7 == 0 ? "\n\n" : "\n");
  auto const expected = edges_of(read_text(text));
  ASSERT_EQ(expected.size(), 500u);
  for (u64 block_bytes : {1u, 2u, 3u, 7u, 64u, 1000u}) EXPECT_EQ(edges_of(read_text(text, false, block_bytes, 3)), expected);
}

TEST(text_edge_list, reads_weights_as_integers_unless_one_is_not) {
  std::string const whole = "0 1 5\n1 0 -7\n", real = "0 1 5\n1 0 0.5\n";
  EXPECT_EQ(read_text(whole, true).weights(), weight_type::int32);
  EXPECT_EQ(edges_of(read_text(whole, true)), (std::vector<plain_edge>{{0, 1, 5}, {1, 0, static_cast<u32>(-7)}}));
  EXPECT_EQ(read_text(real, true).weights(), weight_type::float32);
  EXPECT_EQ(edges_of(read_text(real, true)),
            (std::vector<plain_edge>{{0, 1, std::bit_cast<u32>(5.0f)}, {1, 0, std::bit_cast<u32>(0.5f)}}));
}

TEST(text_edge_list, names_the_line_and_what_is_wrong_with_it) {
  auto const said = [](std::string const& text, bool weighted = false, u64 block = 4) {
    return complaint([&] { read_text(text, weighted, block); });
  };
  EXPECT_EQ(said("0 1\n1 2\n# c\n2 x\n"),
            "read x.el: line 4: 'x' is no vertex number from 0 to 2^63 - 1 (titles of columns need header, names of vertices "
            "a .csv file): correct the line");
  EXPECT_TRUE(has(said("0 1\n-1 2\n"), "line 2: '-1' is no vertex number"));
  EXPECT_TRUE(has(said("0 1\n\n5\n"), "line 3: two vertex numbers are needed"));
  EXPECT_TRUE(has(said("0 99999999999999999999\n"), "line 1: '99999999999999999999' is no vertex number"));
  EXPECT_TRUE(has(said("0 9223372036854775808\n"), "line 1: '9223372036854775808' is no vertex number from 0 to 2^63 - 1"));
  EXPECT_TRUE(has(complaint([] { read_text("0 1099511627776\n", false, 4, 1, {.renumber = renumbering::never}); }),
                  "line 1: '1099511627776' is no vertex number from 0 to 2^40 - 1 (renumber takes larger ones)"));
  EXPECT_TRUE(has(said("0 1 2\n"), "line 1: '2' after the last field: a line has two fields; with weights, three"));
  EXPECT_TRUE(has(said("0 1\n", true), "line 1: a third field"));
  EXPECT_TRUE(has(said("0 1 nan\n", true), "line 1: 'nan' is no int32 or float32 weight"));
  EXPECT_TRUE(has(said("1.5 2\n"), "line 1: '1.5'"));
  // An integer is never rounded: what float32 would make of it is another number.
  EXPECT_TRUE(has(said("0 1 0.5\n0 1 2147483648\n", true), "line 2: '2147483648' does not fit int32"));
  EXPECT_TRUE(has(said("0 1 -99999999999999999999\n", true), "'-99999999999999999999' does not fit int32"));
  EXPECT_TRUE(has(said("0 1 1e99\n", true), "'1e99' is too large for float32"));
  EXPECT_TRUE(has(said("0 1 1e-50\n", true), "line 1: '1e-50' is too small for float32: scale the weights"));
  EXPECT_TRUE(has(said("0 1 -1e999\n", true), "'-1e999' does not fit float32"));
  EXPECT_TRUE(has(said("0 1 16777217.0\n", true), "'16777217.0' is an integer that float32 cannot hold exactly"));
  EXPECT_TRUE(has(said("0 1 7\n0 1 16777217\n0 1 0.5\n", true), "line 2: its weight is an integer that float32 cannot hold"));
  EXPECT_EQ(read_text("0 1 16777217\n", true).weights(), weight_type::int32);
  // The smallest number of float32 is itself; what would be rounded to it is not.
  EXPECT_EQ(read_text("0 1 1.401298464324817e-45\n", true).weights(), weight_type::float32);
  EXPECT_TRUE(has(said("0 1 1e-45\n", true), "'1e-45' is too small for float32"));
  // What NetworkX writes by default.
  EXPECT_EQ(edges_of(read_text("0 1 {}\r\n1 0 {}\n")).size(), 2u);
  EXPECT_TRUE(has(said("0 1 {'weight': 3}\n"), "line 1: the attributes of an edge as NetworkX writes them: write"));
  EXPECT_TRUE(has(said("0 1 {}\n", true), "line 1: the attributes of an edge as NetworkX writes them"));
  EXPECT_EQ(read_text("0 1 2147483648.0\n", true).weights(), weight_type::float32);
}

TEST(text_edge_list, refuses_files_without_edges_and_without_lines) {
  EXPECT_TRUE(has(complaint([] { read_text(""); }), "has no edges"));
  EXPECT_TRUE(has(complaint([] { read_text("# nothing\n"); }), "has no edges"));
  std::string const binary(3 << 20, '\x01');
  EXPECT_TRUE(has(complaint([&] { read_text(binary); }), "a line of more than 1 MiB"));
}

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<char const*>(&value), sizeof value);
}

/// Bytes of a .sg or .wsg file; weights are the positions.
std::string gap_bytes(bool directed, std::vector<std::int64_t> const& offsets, std::vector<int> const& to,
                      bool weighted = false) {
  std::string bytes(1, directed ? '\1' : '\0');
  put(bytes, static_cast<std::int64_t>(to.size()));
  put(bytes, static_cast<std::int64_t>(offsets.size() - 1));
  for (int copies = directed ? 2 : 1; copies > 0; --copies) {
    for (std::int64_t offset : offsets) put(bytes, offset);
    for (int i = 0; int v : to) {
      put(bytes, v);
      if (weighted) put(bytes, i++);
    }
  }
  return bytes;
}

gap_serialized read_gap(std::string const& bytes, bool weighted = false) {
  return gap_serialized(byte_input(std::as_bytes(std::span(bytes)), "x.sg"), weighted);
}

TEST(gap_serialized, reads_edges_and_weights) {
  std::string const plain = gap_bytes(false, {0, 1, 1, 3}, {2, 0, 0});
  EXPECT_EQ(edges_of(read_gap(plain)), (std::vector<plain_edge>{{0, 2, 0}, {2, 0, 0}, {2, 0, 0}}));
  EXPECT_FALSE(read_gap(plain).directed());
  std::string const weighted = gap_bytes(true, {0, 2, 2}, {0, 1}, true);
  EXPECT_EQ(edges_of(read_gap(weighted, true)), (std::vector<plain_edge>{{0, 0, 0}, {0, 1, 1}}));
  EXPECT_TRUE(read_gap(weighted, true).directed());
}

TEST(gap_serialized, says_what_disagrees) {
  std::string const good = gap_bytes(false, {0, 1, 3}, {1, 0, 0});
  auto const said = [](std::string const& bytes, bool weighted = false) {
    return complaint([&] { edges_of(read_gap(bytes, weighted)); });
  };
  EXPECT_TRUE(has(said(good.substr(0, 16)), "truncated: a GAP graph starts with 17 bytes, the file has 16"));
  EXPECT_TRUE(has(said(good.substr(0, good.size() - 1)), "2 vertices and 3 edges, which take 53 bytes, the file has 52"));
  EXPECT_TRUE(has(said(good + "x"), "which take 53 bytes, the file has 54"));
  EXPECT_TRUE(has(said(good, true), "name it .sg"));
  EXPECT_TRUE(has(said("\7" + good.substr(1)), "first byte is 7"));
  EXPECT_TRUE(has(said(gap_bytes(false, {0, 4, 3}, {1, 0, 0})), "offsets go backwards from vertex 1 (4) to the next (3)"));
  EXPECT_TRUE(has(said(gap_bytes(false, {1, 2, 3}, {1, 0, 0})), "offset 0 is 1, not 0"));
  EXPECT_TRUE(has(said(gap_bytes(false, {0, 1, 2}, {1, 0, 0})), "the last offset is 2, there are 3 edges"));
  EXPECT_TRUE(has(said(gap_bytes(false, {0, 1, 3}, {1, 2, 0})), "edge 1 points to vertex 2, the graph has 2"));
  EXPECT_TRUE(has(said(gap_bytes(false, {0, 1, 3}, {1, -5, 0})), "edge 1 points to vertex -5"));
}

}  // namespace
}  // namespace penstock::graph
