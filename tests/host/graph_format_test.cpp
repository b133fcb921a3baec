// Readers of DIMACS, METIS, EMOGI's and Subway's graphs: which edges they find, and what they say to each kind of damage.
#include "libs/graph/array_edges.hpp"
#include "libs/graph/bel_family.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/graph_file.hpp"
#include "libs/graph/metis_graph.hpp"
#include "libs/graph/subway_csr.hpp"
#include "libs/graph/text_edge_list.hpp"
#include "tests/host/graph_test_support.hpp"

#include <cstdint>
#include <optional>
#include <random>

namespace penstock::graph {
namespace {

using edges = std::vector<plain_edge>;

byte_input input_of(std::string const& bytes, std::string const& name) {
  return byte_input(std::as_bytes(std::span(bytes)), name);
}

text_edge_list read_gr(std::string const& text, u64 block_bytes = 1 << 20, unsigned threads = 1) {
  progress_meter meter;
  return text_edge_list(input_of(text, "x.gr"), text_dialect::gr, threads, meter, block_bytes);
}

metis_graph read_metis(std::string const& text, u64 block_bytes = 1 << 20, unsigned threads = 1) {
  progress_meter meter;
  return metis_graph(input_of(text, "x.graph"), threads, meter, block_bytes);
}

TEST(dimacs, reads_arcs_weights_and_the_number_of_vertices) {
  std::string const text = "c DIMACS 9\n\np sp 4 3\r\na 1 2 7\nc inside\na 3 1 -5\na 2 2 0";
  EXPECT_EQ(edges_of(read_gr(text)), (edges{{0, 1, 7}, {2, 0, static_cast<u32>(-5)}, {1, 1, 0}}));
  EXPECT_EQ(read_gr(text).vertices(), 4u);
  EXPECT_EQ(read_gr(text).weights(), weight_type::int32);
  EXPECT_EQ(edges_of(read_gr("p edge 2 1\na 2 1 1\n")), (edges{{1, 0, 1}}));
  EXPECT_EQ(read_gr("p sp 5 0\n").vertices(), 5u);
  EXPECT_TRUE(edges_of(read_gr("p sp 5 0\n")).empty());
}

TEST(dimacs, does_not_depend_on_blocks_or_threads) {
  std::string text = "c a comment before everything\nc another\np sp 1000 500\n";
  for (u64 i = 0; i < 500; ++i) {
    text += "a " + std::to_string(1 + i * 7919 % 1000) + " " + std::to_string(i + 1) + " " + std::to_string(i) + "\n";
    if (i % 7 == 0) text += "c between\n\n";
  }
  edges const expected = edges_of(read_gr(text));
  ASSERT_EQ(expected.size(), 500u);
  for (u64 block_bytes : {1u, 2u, 3u, 7u, 64u, 1000u}) EXPECT_EQ(edges_of(read_gr(text, block_bytes, 3)), expected);
}

TEST(dimacs, reads_edges_of_undirected_graphs_listed_once_or_twice) {
  edges const once{{0, 1, 0}, {2, 0, 0}}, twice{{0, 1, 0}, {1, 0, 0}};
  std::string const clique = "c a clique\np edge 3 2\nn 1 4\ne 1 2\ne 3 1\n";
  for (u64 block_bytes : {1u, 7u, 1000u}) {
    text_edge_list const list = read_gr(clique, block_bytes, 2);
    EXPECT_EQ(edges_of(list), once);
    EXPECT_EQ(list.weights(), weight_type::none);
    EXPECT_TRUE(list.undirected());
    EXPECT_EQ(list.reading(), "2 rows 'e u v'");
  }
  EXPECT_EQ(edges_of(read_gr("p col 2 1\ne 1 2\ne 2 1\n")), twice);
  EXPECT_EQ(edges_of(read_gr("p col 2 2\ne 1 2\n")).size(), 1u);
  EXPECT_FALSE(read_gr("p edge 2 1\na 2 1 1\n").undirected());
  auto const said = [](std::string const& text) { return complaint([&] { read_gr(text); }); };
  EXPECT_TRUE(has(said("p edge 3 9\ne 1 2\n"), "line 1: it says 9 edges, the file has 1"));
  EXPECT_TRUE(has(said("p edge 3 1\ne 1 2 7\n"), "line 2: '7' after the last field: "));
  EXPECT_TRUE(has(said("p edge 3 2\ne 1 2\na 1 2 3\n"), "line 3: 'a' begins no line of a .gr file: c, p and e do"));
}

TEST(dimacs, names_the_line_and_what_is_wrong_with_it) {
  auto const said = [](std::string const& text, u64 block = 4) { return complaint([&] { read_gr(text, block); }); };
  EXPECT_EQ(said("c\np sp 3 1\na 1 4 1\n"), "read x.gr: line 3: '4' is no vertex number from 1 to 3: correct the line");
  EXPECT_TRUE(has(said("p sp 3 1\na 0 1 1\n"), "line 2: '0' is no vertex number from 1 to 3"));
  EXPECT_TRUE(has(said("p sp 3 1\na 1\n"), "line 2: two vertex numbers are needed"));
  EXPECT_TRUE(has(said("p sp 3 1\na 1 2\n"), "line 2: a weight is needed"));
  EXPECT_TRUE(has(said("p sp 3 1\na 1 2 0.5\n"), "line 2: '0.5' is no int32 weight"));
  EXPECT_TRUE(has(said("p sp 3 1\na 1 2 2147483648\n"), "line 2: '2147483648' is no int32 weight"));
  EXPECT_TRUE(has(said("p sp 3 1\na 1 2 3 4\n"), "line 2: '4' after the last field: an arc is"));
  EXPECT_TRUE(has(said("p sp 3 1\ne 1 2\n"), "after 'p edge' edges are 'e u v', after 'p sp' arcs are 'a u v w'"));
  EXPECT_TRUE(has(said("p sp 3 1\nx 1 2 3\n"), "line 2: 'x' begins no line of a .gr file: c, p and a do"));
  EXPECT_TRUE(has(said("p sp 3 1\na 1 2 3\n\np sp 3 1\n"), "line 4: a second p line"));
}

TEST(dimacs, needs_a_p_line_that_is_right) {
  auto const said = [](std::string const& text, u64 block = 4) { return complaint([&] { read_gr(text, block); }); };
  EXPECT_TRUE(has(said("c\na 1 2 3\np sp 3 1\n"), "line 2: 'a' begins no line 'p sp VERTICES ARCS', which comes first"));
  EXPECT_TRUE(has(said("p 3 1\na 1 1 1\n"), "line 1: 'p' begins no line 'p sp"));
  for (char const* header : {"p sp 3", "p sp 3 1 1", "p sp 0 1", "p sp 1099511627777 1", "p sp -1 1"}) {
    EXPECT_TRUE(has(said(std::string(header) + "\na 1 1 1\n"),
                    "line 1: p 'sp' has other numbers than those of vertices, at most 1099511627776, and of arcs"))
        << header;
  }
  EXPECT_TRUE(has(said("p max 3 1\n"), "line 1: p 'max' is of another problem: graphs are 'p sp'"));
  EXPECT_EQ(said("c\n"), "read x.gr: has no line 'p sp VERTICES ARCS': add it before the arcs");
  EXPECT_TRUE(has(said(""), "has no line 'p sp"));
  EXPECT_EQ(said("c\np sp 3 2\na 1 2 3\n"), "read x.gr: line 2: it says 2 arcs, the file has 1: correct the line");
  EXPECT_TRUE(has(said("p sp 3 1\na 1 2 3\na 1 2 3\n"), "line 1: it says 1 arcs, the file has 2"));
}

TEST(metis, reads_lists_with_comments_and_empty_lines) {
  std::string const text = "% by hand\n4 3\n 2 3\r\n% inside\n1 3\n2 1\n\n";
  EXPECT_EQ(edges_of(read_metis(text)), (edges{{0, 1, 0}, {0, 2, 0}, {1, 0, 0}, {1, 2, 0}, {2, 1, 0}, {2, 0, 0}}));
  EXPECT_EQ(read_metis(text).vertices(), 4u);
  EXPECT_EQ(read_metis(text).weights(), weight_type::none);
  // The list of the last vertex is what follows the last newline: nothing.
  EXPECT_EQ(edges_of(read_metis("3 1\n2\n1\n")).size(), 2u);
  EXPECT_EQ(edges_of(read_metis("1 0\n")).size(), 0u);
  EXPECT_EQ(edges_of(read_metis("2 1\n2\n1\n\n\n% end\n \n")).size(), 2u);
}

TEST(metis, keeps_weights_of_edges_and_drops_those_of_vertices) {
  edges const plain{{0, 1, 0}, {1, 0, 0}}, weighted{{0, 1, 9}, {1, 0, 9}};
  EXPECT_EQ(edges_of(read_metis("2 1 0\n2\n1\n")), plain);
  EXPECT_EQ(edges_of(read_metis("2 1 1\n2 9\n1 9\n")), weighted);
  EXPECT_EQ(edges_of(read_metis("2 1 10\n70 2\n71 1\n")), plain);
  EXPECT_EQ(edges_of(read_metis("2 1 011 3\n7 7 7 2 9\n8 8 8 1 9\n")), weighted);
  EXPECT_EQ(edges_of(read_metis("2 1 100\n5 2\n6 1\n")), plain);
  EXPECT_EQ(edges_of(read_metis("2 1 111 2\n5 1 1 2 9\n6 0 0 1 9\n")), weighted);
  EXPECT_EQ(read_metis("2 1 1\n2 9\n1 9\n").weights(), weight_type::int32);
}

/// A graph of `vertices`, some of them without edges, as text of format 1, with comments.
std::string drawn_metis(u64 vertices, u64 edge_count, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> lists(vertices);
  for (u64 i = 0; i < edge_count; ++i) {
    u64 const a = random() % vertices, b = (a + 1 + random() % (vertices - 1)) % vertices;
    std::string const weight = " " + std::to_string(random() % 100) + " ";
    lists[a] += std::to_string(b + 1) + weight;
    lists[b] += std::to_string(a + 1) + weight;
  }
  std::string text = "% drawn\n" + std::to_string(vertices) + " " + std::to_string(edge_count) + " 1\n";
  for (std::string const& list : lists) text += (random() % 5 == 0 ? "%\n" : "") + list + "\n";
  return text;
}

TEST(metis, does_not_depend_on_blocks_or_threads) {
  std::string const text = drawn_metis(200, 300, 1);
  edges const expected = edges_of(read_metis(text));
  ASSERT_EQ(expected.size(), 600u);
  for (u64 block_bytes : {1u, 2u, 3u, 7u, 64u, 1000u}) EXPECT_EQ(edges_of(read_metis(text, block_bytes, 3)), expected);
}

TEST(metis, names_the_line_and_what_is_wrong_with_it) {
  auto const said = [](std::string const& text, u64 block = 4) { return complaint([&] { read_metis(text, block); }); };
  EXPECT_EQ(said("%\n2 1\n2\n3\n"), "read x.graph: line 4: '3' is no vertex number from 1 to 2: correct the line");
  EXPECT_TRUE(has(said("2 1\n0\n1\n"), "line 2: '0' is no vertex number"));
  EXPECT_TRUE(has(said("2 1\n2\nx\n"), "line 3: 'x' is no vertex number"));
  EXPECT_TRUE(has(said("2 1 1\n2\n1 1\n"), "line 2: '' is no int32 weight after neighbour 2"));
  EXPECT_TRUE(has(said("2 1 1\n2 1\n1 1.5\n"), "line 3: '1.5' is no int32 weight after neighbour 1"));
  EXPECT_TRUE(has(said("2 1 10 2\n1 1 2\n1\n"), "line 3: '' is no size or weight of a vertex: a list begins with 2 of them"));
  EXPECT_TRUE(has(said("2 1 10\n-1 2\n1 1\n"), "line 2: '-1' is no size or weight"));
  EXPECT_TRUE(has(said("2 1\n2\n1\n\n1\n"), "line 5: a list after that of the last vertex, 2"));
}

TEST(metis, checks_the_header) {
  auto const said = [](std::string const& text, u64 block = 4) { return complaint([&] { read_metis(text, block); }); };
  EXPECT_TRUE(has(said("% only\n"), "has no header"));
  EXPECT_TRUE(has(said(""), "has no header"));
  EXPECT_TRUE(has(said("\n2 1\n"), "line 1: the header is no 'VERTICES EDGES [FORMAT [WEIGHTS]]'"));
  EXPECT_TRUE(has(said("2\n2\n1\n"), "line 1: the header is no"));
  EXPECT_TRUE(has(said("0 1\n"), "line 1: a graph of 0 vertices and 1 edges cannot be"));
  EXPECT_TRUE(has(said("2 1 2\n2\n1\n"), "line 1: format '2' is none of"));
  EXPECT_TRUE(has(said("2 1 0001\n2\n1\n"), "line 1: format '0001' is none of"));
  EXPECT_TRUE(has(said("2 1 1 2\n2\n1\n"), "line 1: the number of weights of a vertex does not fit format '001'"));
  EXPECT_TRUE(has(said("2 1 10 0\n2\n1\n"), "the number of weights of a vertex does not fit format '010'"));
  EXPECT_TRUE(has(said("2 1 10 1 1\n2\n1\n"), "line 1: '1' after the last field of the header"));
  EXPECT_TRUE(has(said("9000000000000000000 1\n"), "line 1: a graph of 9000000000000000000 vertices"));
}

TEST(metis, counts_lists_and_what_they_list) {
  auto const said = [](std::string const& text, u64 block = 4) { return complaint([&] { read_metis(text, block); }); };
  EXPECT_TRUE(has(said("4 1\n2\n1\n"), "its header says 4 vertices, there are lists for 3"));
  EXPECT_TRUE(has(said("2 1\n2\n"), "not listed at both ends"));
  EXPECT_TRUE(has(said("3 1\n2\n1"), "its header says 3 vertices, there are lists for 2"));
  EXPECT_EQ(said("2 3\n2 2\n1 1\n"),
            "read x.graph: its header says 3 edges, so 6 neighbours, the lists have 4: correct the header");
}

TEST(metis, takes_loops_once_however_often_they_are_listed) {
  edges const expected{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}};
  EXPECT_EQ(edges_of(read_metis("2 2\n1 2\n1\n")), expected);
  EXPECT_EQ(edges_of(read_metis("2 2\n1 2 1\n1\n")), (edges{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}}));
  auto const said = [](std::string const& text) { return complaint([&] { read_metis(text, 4); }); };
  EXPECT_EQ(
      said("2 1\n1 2\n1\n"),
      "read x.graph: its header says 1 edges, so 2 neighbours, the lists have 3, 1 of them loops, of which a list has one "
      "each: correct the header, or remove the loops");
}

TEST(metis, notices_edges_that_only_one_end_lists) {
  auto const said = [](std::string const& text, u64 block = 4) { return complaint([&] { read_metis(text, block); }); };
  // As many neighbours as the header says.
  EXPECT_TRUE(has(said("4 2\n2\n1\n4\n1\n"), "line 2: vertex 1: an edge to a higher vertex is not listed at both ends"));
  EXPECT_TRUE(has(said("3 1 1\n2 5\n1 6\n\n"), "line 2: vertex 1: an edge to a higher vertex"));
  EXPECT_TRUE(has(said("4 2\n\n3 3\n2\n2\n"), "line 3: vertex 2: an edge to a higher vertex"));
}

template <class T>
std::string bytes_of_all(std::vector<T> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}

/// The three files of a family.
struct bel_bytes {
  std::string col, dst, val;
};

bel_bytes make_bel(std::vector<u64> const& offsets, std::vector<u64> const& to, std::vector<std::int32_t> const& weights = {}) {
  auto const head = [](std::size_t count) { return bytes_of_all<u64>({count, 12345}); };
  return {head(offsets.size()) + bytes_of_all(offsets), head(to.size()) + bytes_of_all(to),
          head(weights.size()) + bytes_of_all(weights)};
}

bel_family read_bel(bel_bytes const& files, bool weighted = false) {
  std::optional<byte_input> weights;
  if (weighted) weights = input_of(files.val, "x.bel.val");
  return bel_family(input_of(files.col, "x.bel.col"), input_of(files.dst, "x.bel.dst"), std::move(weights));
}

TEST(bel_family, reads_edges_and_weights) {
  bel_bytes const files = make_bel({0, 0, 2, 3, 3}, {3, 0, 1}, {5, -6, 7});
  EXPECT_EQ(edges_of(read_bel(files)), (edges{{1, 3, 0}, {1, 0, 0}, {2, 1, 0}}));
  EXPECT_EQ(edges_of(read_bel(files, true)), (edges{{1, 3, 5}, {1, 0, static_cast<u32>(-6)}, {2, 1, 7}}));
  EXPECT_EQ(read_bel(files).vertices(), 4u);
  EXPECT_TRUE(read_bel(files).directed());
  EXPECT_EQ(read_bel(files).remark(), "");
  EXPECT_EQ(read_bel(make_bel({0, 0}, {})).vertices(), 1u);
}

TEST(bel_family, puts_right_the_count_of_edges_at_the_head_of_the_offsets) {
  bel_bytes files = make_bel({0, 2, 5}, {1, 0, 1, 1, 0});
  edges const expected = edges_of(read_bel(files));
  files.col[0] = 5;
  EXPECT_EQ(edges_of(read_bel(files)), expected);
  EXPECT_EQ(read_bel(files).remark(),
            "read x.bel.col: its header says 5 offsets, its size 3: the first is the number of edges, so the size was taken");
  files.col[0] = 4;
  EXPECT_TRUE(has(complaint([&] { read_bel(files); }), "x.bel.col: its header says 4 offsets, its size 3: get the file again"));
}

TEST(bel_family, says_what_disagrees) {
  bel_bytes const good = make_bel({0, 2, 3}, {1, 0, 1}, {1, 1, 1});
  auto const said = [](bel_bytes const& files, bool weighted = false) {
    return complaint([&] { edges_of(read_bel(files, weighted)); });
  };
  auto const with = [&](auto change) {
    bel_bytes files = good;
    change(files);
    return said(files, true);
  };
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.col.resize(15); }), "x.bel.col: truncated: a .bel file starts with 16 bytes"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.dst.resize(0); }), "x.bel.dst: truncated"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.val.resize(3); }), "x.bel.val: truncated"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.col.pop_back(); }), "x.bel.col: its 39 bytes are no 16 and offsets of 8 bytes"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.col.resize(16); }), "x.bel.col: its 16 bytes are no 16 and offsets of 8 bytes"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.col.resize(24); }), "x.bel.col: the last offset is 0, there are 3 edges"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.col += std::string(8, '\0'); }), "x.bel.col: offsets go backwards from vertex 2"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.dst.pop_back(); }),
                  "x.bel.dst: its header says 3 items of 8 bytes after the first 16, the file has 39 bytes"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.dst[7] = '\x70'; }), "x.bel.dst: its header says 8070450532247928835 items"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.val += "1234"; }), "x.bel.val: its header says 3 items of 4 bytes"));
  EXPECT_TRUE(has(with([](bel_bytes& f) { f.val = make_bel({}, {}, {1, 1}).val; }), "has 2 weights for 3 edges"));
  EXPECT_TRUE(has(said(make_bel({1, 2, 3}, {1, 0, 1})), "x.bel.col: offset 0 is 1, not 0"));
  EXPECT_TRUE(has(said(make_bel({0, 4, 3}, {1, 0, 1})), "x.bel.col: offsets go backwards from vertex 1 (4) to the next (3)"));
  EXPECT_TRUE(has(said(make_bel({0, 1, 2}, {1, 0, 1})), "x.bel.col: the last offset is 2, there are 3 edges"));
  EXPECT_TRUE(has(said(make_bel({0, 2, 3}, {1, 2, 1})), "x.bel.dst: edge 1 points to vertex 2, the graph has 2"));
  EXPECT_TRUE(has(said(make_bel({0, 2, 3}, {1, 0, ~u64{0}})), "edge 2 points to vertex 18446744073709551615"));
}

/// Bytes of a .bcsr or .bwcsr file; weights are ten times the position.
std::string subway_bytes(std::vector<u32> const& offsets, std::vector<u32> const& to, bool weighted = false) {
  std::string bytes =
      bytes_of_all<u32>({static_cast<u32>(offsets.size()), static_cast<u32>(to.size())}) + bytes_of_all(offsets);
  for (u32 i = 0; u32 v : to) bytes += weighted ? bytes_of_all<u32>({v, 10 * i++}) : bytes_of_all<u32>({v});
  return bytes;
}

subway_csr read_subway(std::string const& bytes, bool weighted = false) {
  return subway_csr(input_of(bytes, "x.bcsr"), weighted);
}

TEST(subway_csr, reads_edges_and_weights) {
  EXPECT_EQ(edges_of(read_subway(subway_bytes({0, 2, 2}, {2, 0, 1}))), (edges{{0, 2, 0}, {0, 0, 0}, {2, 1, 0}}));
  EXPECT_EQ(edges_of(read_subway(subway_bytes({0, 2, 2}, {2, 0, 1}, true), true)), (edges{{0, 2, 0}, {0, 0, 10}, {2, 1, 20}}));
  EXPECT_TRUE(read_subway(subway_bytes({0}, {})).directed());
  EXPECT_EQ(edges_of(read_subway(subway_bytes({0, 1, 1}, {2}))), (edges{{0, 2, 0}}));
}

TEST(subway_csr, goes_over_the_ends_of_blocks) {
  constexpr u32 vertices = 1000, degree = 700;  // 700 000 edges: three blocks
  std::vector<u32> offsets, to;
  for (u32 v = 0; v < vertices; ++v) {
    offsets.push_back(v * degree);
    for (u32 i = 0; i < degree; ++i) to.push_back((v + i) % vertices);
  }
  std::string const bytes = subway_bytes(offsets, to, true);
  edges const found = edges_of(read_subway(bytes, true));
  ASSERT_EQ(read_subway(bytes, true).blocks(), 3u);
  ASSERT_EQ(found.size(), to.size());
  for (u32 i = 0; i < to.size(); ++i) ASSERT_EQ(found[i], plain_edge(i / degree, to[i], 10 * i));
}

TEST(subway_csr, says_what_disagrees) {
  std::string const good = subway_bytes({0, 1}, {1, 0, 0});
  auto const said = [](std::string const& bytes, bool weighted = false) {
    return complaint([&] { edges_of(read_subway(bytes, weighted)); });
  };
  EXPECT_TRUE(has(said(good.substr(0, 7)), "truncated: a .bcsr or .bwcsr graph starts with 8 bytes, the file has 7"));
  EXPECT_TRUE(has(said(good.substr(0, 27)), "2 vertices and 3 edges, which take 28 bytes, the file has 27"));
  EXPECT_TRUE(has(said(good + "x"), "which take 28 bytes, the file has 29"));
  EXPECT_TRUE(has(said(good, true), "or name it .bcsr (no weights) or .bwcsr"));
  EXPECT_TRUE(has(said(subway_bytes({}, {1})), "0 vertices and 1 edges: edges need vertices"));
  EXPECT_TRUE(has(said(subway_bytes({1, 1}, {1, 0, 0})), "offset 0 is 1, not 0"));
  EXPECT_TRUE(has(said(subway_bytes({0, 2, 1}, {1, 0, 0})), "offsets go backwards from vertex 1 (2) to the next (1)"));
  EXPECT_TRUE(has(said(subway_bytes({0, 4}, {1, 0, 0})), "the last offset is 4, there are 3 edges"));
  std::string const heavy = bytes_of_all<u32>({1, 2, 0, 0, ~u32{0} >> 1, 0, u32{1} << 31});
  EXPECT_TRUE(has(said(heavy, true), "edge 1 has weight 2147483648, which does not fit int32: scale the weights"));
  EXPECT_TRUE(has(said(subway_bytes({0, 1}, {1, 2, 0})), "edge 1 points to vertex 2, the graph has 2"));
  EXPECT_TRUE(has(said(subway_bytes({0, 1}, {1, 0, ~u32{0}})), "edge 2 points to vertex 4294967295"));
}

TEST(graph_file, is_opened_by_the_name_of_its_format) {
  scratch_folder const folder;
  bel_bytes const files = make_bel({0, 1, 2}, {1, 0}, {3, 4});
  put_file(folder / "a.bel.col", files.col);
  put_file(folder / "a.bel.dst", files.dst);
  put_file(folder / "a.graph", "2 1\n2\n1\n");
  progress_meter meter;
  EXPECT_EQ(open_graph_file(folder / "a.bel", "bel", 1, meter).edges->weights(), weight_type::none);
  put_file(folder / "a.bel.val", files.val);
  EXPECT_EQ(edges_of(*open_graph_file(folder / "a.bel", "bel", 1, meter).edges), (edges{{0, 1, 3}, {1, 0, 4}}));
  EXPECT_FALSE(open_graph_file(folder / "a.graph", "graph", 1, meter).directed);
  EXPECT_TRUE(has(complaint([&] { open_graph_file(folder / "a.graph", "x", 1, meter); }), "'x' is no format"));
  EXPECT_TRUE(has(complaint([&] { open_graph_file(folder / "b.bel", "bel", 1, meter); }, error_kind::world), "b.bel.col"));
}

TEST(graph_file, may_have_no_vertices_where_its_format_says_how_many) {
  std::string const subway(8, '\0');
  EXPECT_EQ(read_subway(subway).vertices(), 0u);
  EXPECT_EQ(read_gr("p sp 0 0\n").vertices(), 0u);
  EXPECT_EQ(read_metis("0 0\n").vertices(), 0u);
  bel_bytes const files = make_bel({0}, {});
  EXPECT_EQ(read_bel(files).vertices(), 0u);
  EXPECT_TRUE(edges_of(read_bel(files)).empty());
}

TEST(graph_file, a_folder_is_one_with_its_weights_names_and_width) {
  scratch_folder const scratch;
  progress_meter meter;
  std::vector<std::string> const names{"a", "b", "c"};
  std::vector<int> const from{0, 1}, to{1, 2};
  std::vector<u32> const weights{7, 9};
  graph_origin const origin{.directed = true, .source = "by hand", .names = names};
  write_graph(array_edges<int>(3, from, to, weights, weight_type::int32, "edges"), scratch / "g", origin, {.wide_ids = true},
              meter);
  graph_file const opened = open_graph_file(scratch / "g", "folder", 1, meter);
  EXPECT_EQ(edges_of(*opened.edges), (edges{{0, 1, 7}, {1, 2, 9}}));
  EXPECT_EQ(opened.edges->weights(), weight_type::int32);
  EXPECT_EQ(opened.names, names);
  EXPECT_TRUE(opened.wide_ids);
  EXPECT_TRUE(opened.directed);
}

TEST(graph_file, is_called_what_it_is_told) {
  scratch_folder const scratch;
  put_file(scratch / "unpacked", "0 x\n");
  progress_meter meter;
  EXPECT_TRUE(
      has(complaint([&] { open_graph_file(scratch / "unpacked", "el", 1, meter, "a.el.gz"); }), "read a.el.gz: line 1"));
}

}  // namespace
}  // namespace penstock::graph
