// METIS graphs, `.graph`: a header "VERTICES EDGES [FORMAT [WEIGHTS]]", then one line per vertex with its neighbours, from 1;
// lines that start with % are comments, an empty line is a vertex without edges. FORMAT has up to three digits: 1 at the end
// for a weight after each neighbour, in the middle for WEIGHTS weights of the vertex (1 unless told), in front for its size;
// what belongs to vertices is checked and dropped. Each edge is listed at both ends; a loop, which METIS itself does not have,
// once or twice.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/graph/text_blocks.hpp"

#include <vector>

namespace penstock::graph {

class line_fields;

class metis_graph final : public edge_source {
 public:
  static constexpr u64 checked_per_mille = 200;

  /// Reads all of `input` twice: to number the lines, and to check each of them, that as many edges are listed as the header
  /// says, and that both ends of each list it. Takes 8 bytes for each vertex while it does. Reports the first checked_per_mille
  /// of a job.
  /// Errors: bad_input naming file and line; world when the file cannot be read.
  metis_graph(byte_input input, unsigned threads, progress_meter& meter, u64 block_bytes = u64{1} << 20);

  u64 vertices() const override { return vertices_; }
  weight_type weights() const override { return weighted_ ? weight_type::int32 : weight_type::none; }
  u64 blocks() const override { return blocks_.count(); }
  void produce(u64 block, edge_sink const& sink) const override;
  u64 worthwhile_passes() const override { return 2; }

 private:
  void read_header();
  void parse_header(block_lines const& lines, char const* at, char const* end);
  void number_lines(unsigned threads, progress_meter& meter);
  void check(unsigned threads, progress_meter& meter);
  [[noreturn]] void refuse_count(u64 listed, u64 loops) const;
  [[noreturn]] void fail_at_vertex(u64 vertex, std::string const& problem) const;
  template <class F>
  void each_numbered_line(block_lines const& lines, F const& f) const;
  template <class F>
  void each_edge(u64 block, F const& f) const;
  template <class F>
  void parse_list(block_lines const& lines, line_fields fields, u64 vertex, F const& f) const;

  text_blocks blocks_;
  u64 vertices_ = 0;
  u64 edges_ = 0;    ///< as the header counts them: half of what is listed
  u64 skipped_ = 0;  ///< fields before the first neighbour
  bool weighted_ = false;
  bool loops_twice_ = false;     ///< that each loop is listed twice, and counts once
  std::vector<u64> first_line_;  ///< of each block, and of the end: comments do not count, the header is 0, vertex v is v + 1
};

}  // namespace penstock::graph
