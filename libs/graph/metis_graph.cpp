#include "libs/graph/metis_graph.hpp"

#include "libs/graph/edge_fingerprint.hpp"
#include "libs/graph/text_fields.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

namespace penstock::graph {
namespace {

/// A vertex with many neighbours has a long line; its list must fit into memory anyway.
constexpr u64 longest_list = u64{1} << 40;
constexpr u64 most_listed_vertices = u64{1} << 40;
constexpr u64 most_listed_edges = u64{1} << 48;
constexpr u64 most_vertex_weights = 1024;

bool is_comment(char const* at, char const* end) { return line_fields(at, end).front() == '%'; }

}  // namespace

metis_graph::metis_graph(byte_input input, unsigned threads, progress_meter& meter, u64 block_bytes)
    : blocks_(std::move(input), block_bytes, longest_list) {
  read_header();
  meter.phase(0, 50);
  number_lines(threads, meter);
  meter.phase(50, checked_per_mille);
  check(threads, meter);
}

/// The header is the first line that is no comment.
void metis_graph::read_header() {
  for (u64 block = 0; block < blocks_.count(); ++block) {
    block_lines const lines = blocks_.read(block);
    bool found = false;
    each_line(lines.text, [&](char const* at, char const* end) {
      if (found || is_comment(at, end)) return;
      found = true;
      parse_header(lines, at, end);
    });
    if (found) return;
  }
  throw_bad_input("read", blocks_.name(), "has no header: write 'VERTICES EDGES' before the lists of neighbours");
}

void metis_graph::parse_header(block_lines const& lines, char const* at, char const* end) {
  line_fields fields(at, end);
  auto const check = [&](bool good, std::string const& problem) {
    if (!good) blocks_.fail(lines, at, problem);
  };
  check(fields.take(vertices_) && fields.take(edges_), "the header is no 'VERTICES EDGES [FORMAT [WEIGHTS]]'");
  check((vertices_ != 0 || edges_ == 0) && vertices_ <= most_listed_vertices && edges_ <= most_listed_edges,
        "a graph of " + std::to_string(vertices_) + " vertices and " + std::to_string(edges_) + " edges cannot be");
  std::string const quoted = fields.quoted();
  std::string_view const format = fields.empty() ? "0" : fields.take_word();
  check(format.size() <= 3 && format.find_first_not_of("01") == format.npos,
        "format " + quoted + " is none of 0, 1, 10, 11, 100, 101, 110, 111");
  std::string digits(3 - format.size(), '0');
  digits += format;
  u64 vertex_weights = digits[1] == '1' ? 1 : 0;
  if (!fields.empty()) {
    bool const wanted = vertex_weights != 0;
    check(fields.take(vertex_weights) && vertex_weights <= most_vertex_weights && (vertex_weights != 0) == wanted,
          "the number of weights of a vertex does not fit format '" + digits + "'");
  }
  check(fields.empty(), fields.quoted() + " after the last field of the header");
  skipped_ = vertex_weights + (digits[0] == '1' ? 1 : 0);
  weighted_ = digits[2] == '1';
}

void metis_graph::number_lines(unsigned threads, progress_meter& meter) {
  first_line_.assign(blocks() + 1, 0);
  parallel_for(blocks(), threads, meter, [&](u64 block) {
    u64 count = 0;
    each_line(blocks_.read(block).text, [&](char const* at, char const* end) { count += is_comment(at, end) ? 0 : 1; });
    first_line_[block + 1] = count;
  });
  for (u64 block = 0; block < blocks(); ++block) first_line_[block + 1] += first_line_[block];
  // What follows the last newline is a line, too: the last vertex has no neighbours where that is nothing.
  u64 const lists = first_line_.back() - 1 + (blocks_.ends_in_newline() ? 1 : 0);
  if (lists < vertices_)
    throw_bad_input("read", blocks_.name(),
                    "its header says " + std::to_string(vertices_) + " vertices, there are lists for " + std::to_string(lists) +
                        ": get the file again if it is cut off, else correct the header");
}

/// Calls f(at, end, number) for each line of a block that is no comment.
template <class F>
void metis_graph::each_numbered_line(block_lines const& lines, F const& f) const {
  u64 number = first_line_[lines.block];
  each_line(lines.text, [&](char const* at, char const* end) {
    if (!is_comment(at, end)) f(at, end, number++);
  });
}

template <class F>
void metis_graph::each_edge(u64 block, F const& f) const {
  block_lines const lines = blocks_.read(block);
  each_numbered_line(lines, [&](char const* at, char const* end, u64 number) {
    line_fields const fields(at, end);
    if (number == 0) return;
    if (number <= vertices_)
      parse_list(lines, fields, number - 1, f);
    else if (!fields.empty())
      blocks_.fail(lines, at, "a list after that of the last vertex, " + std::to_string(vertices_));
  });
}

template <class F>
void metis_graph::parse_list(block_lines const& lines, line_fields fields, u64 vertex, F const& f) const {
  for (u64 i = 0; i < skipped_; ++i)
    if (u64 ignored = 0; !fields.take(ignored))
      blocks_.fail(
          lines, fields.at(),
          fields.quoted() + " is no size or weight of a vertex: a list begins with " + std::to_string(skipped_) + " of them");
  bool skip_loop = false;
  while (!fields.empty()) {
    edge e{vertex, 0, 0};
    line_fields const before = fields;
    if (!fields.take(e.to) || e.to == 0 || e.to > vertices_)
      blocks_.fail(lines, before.at(), before.quoted() + " is no vertex number from 1 to " + std::to_string(vertices_));
    --e.to;
    int weight = 0;
    if (weighted_ && !fields.take(weight))
      blocks_.fail(lines, fields.at(), fields.quoted() + " is no int32 weight after neighbour " + std::to_string(e.to + 1));
    e.weight = static_cast<u32>(weight);
    if (e.to == vertex && loops_twice_ && std::exchange(skip_loop, !skip_loop)) continue;
    f(e);
  }
}

void metis_graph::check(unsigned threads, progress_meter& meter) {
  std::vector<u64> balance(vertices_);  // at the lower end of each edge
  std::atomic<u64> listed{0}, loops{0};
  parallel_for(blocks(), threads, meter, [&](u64 block) {
    u64 mine = 0, my_loops = 0;
    each_edge(block, [&](edge const& e) {
      ++mine;
      if (e.from == e.to) ++my_loops;
      std::atomic_ref(balance[std::min(e.from, e.to)]).fetch_add(signed_fingerprint(e), std::memory_order_relaxed);
    });
    listed.fetch_add(mine, std::memory_order_relaxed);
    loops.fetch_add(my_loops, std::memory_order_relaxed);
  });
  auto const wrong = std::find_if(balance.begin(), balance.end(), [](u64 sum) { return sum != 0; });
  if (wrong != balance.end())
    fail_at_vertex(static_cast<u64>(wrong - balance.begin()),
                   "an edge to a higher vertex is not listed at both ends, or with two weights");
  // METIS has no loops; programs that write them list a loop once or, as the other edges, twice.
  if (listed + loops == 2 * edges_) return;
  loops_twice_ = loops != 0 && loops % 2 == 0 && listed == 2 * edges_;
  if (!loops_twice_) refuse_count(listed, loops);
}

void metis_graph::refuse_count(u64 listed, u64 loops) const {
  std::string const of_loops = loops == 0 ? "" : ", " + std::to_string(loops) + " of them loops, of which a list has one each";
  throw_bad_input("read", blocks_.name(),
                  "its header says " + std::to_string(edges_) + " edges, so " + std::to_string(2 * edges_) +
                      " neighbours, the lists have " + std::to_string(listed) + of_loops + ": correct the header" +
                      (loops == 0 ? "" : ", or remove the loops"));
}

void metis_graph::fail_at_vertex(u64 vertex, std::string const& problem) const {
  auto const after = std::upper_bound(first_line_.begin(), first_line_.end(), vertex + 1);
  block_lines const lines = blocks_.read(static_cast<u64>(after - first_line_.begin()) - 1);
  char const* list = lines.text.data();
  each_numbered_line(lines, [&](char const* at, char const*, u64 number) {
    if (number == vertex + 1) list = at;
  });
  blocks_.fail(lines, list, "vertex " + std::to_string(vertex + 1) + ": " + problem);
}

void metis_graph::produce(u64 block, edge_sink const& sink) const {
  std::vector<edge> batch;
  each_edge(block, [&](edge const& e) {
    batch.push_back(e);
    if (batch.size() == 2048) sink(batch), batch.clear();
  });
  if (!batch.empty()) sink(batch);
}

}  // namespace penstock::graph
