// Edges one per line, in three dialects that differ in what else a line may be:
//     .el   "u v", ids from 0; empty lines, and comment lines that start with # or %; {}, as NetworkX writes it, after the ids
//     .wel  "u v w", the same otherwise
//     .gr   DIMACS: comment lines that start with c; before all edges one line "p sp VERTICES ARCS", which must be right; then
//           "a u v w", ids from 1, int32 weights (DIMACS 9). After "p edge" or "p col" lines may be "e u v" instead: edges of
//           an undirected graph (DIMACS 2), each listed once or twice, and "n v value", which is dropped.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/graph/text_blocks.hpp"
#include "libs/graph/text_layout.hpp"

namespace penstock::graph {

class line_fields;

class text_edge_list final : public edge_source {
 public:
  /// How much of the whole work looking at all lines once is, in per mille; numbering ids takes as much again.
  static constexpr u64 looked_at_per_mille = 200;

  /// Reads all of `input` once, to check each line and to find the number of vertices (.gr says it; else highest id + 1, or the
  /// distinct ids where they are numbered) and the type of the weights (int32 unless one of them has a fraction or an
  /// exponent); once more where ids are numbered. Reports the first done_per_mille() of a job. Errors: bad_input naming file,
  /// line and field; world when the file cannot be read.
  text_edge_list(byte_input input, text_dialect dialect, unsigned threads, progress_meter& meter,
                 u64 block_bytes = u64{1} << 20, text_layout const& layout = {});

  u64 vertices() const override { return vertices_; }
  weight_type weights() const override { return weights_; }
  u64 blocks() const override { return blocks_.count(); }
  void produce(u64 block, edge_sink const& sink) const override;
  u64 worthwhile_passes() const override { return 2; }
  u64 held_bytes() const override { return ids_.size() * sizeof(u64); }

  /// Whether each line stands for both directions of an edge.
  bool undirected() const { return undirected_; }
  /// The ids of the vertices where they were numbered anew, else none.
  std::vector<std::string> names() const;
  /// Which columns were read as what, and how many lines, in words.
  std::string reading() const;
  u64 done_per_mille() const { return ids_.empty() ? looked_at_per_mille : 2 * looked_at_per_mille; }

 private:
  struct findings;
  struct rules;

  void find_header(text_layout const& layout);
  void take_header(block_lines const& lines, char const* at, char const* end, text_layout const& layout);
  void find_columns(text_layout const& layout);
  findings look_at_all(unsigned threads, progress_meter& meter) const;
  void check_arcs(u64 found) const;
  void check_weights(findings const& found) const;
  void number_ids(unsigned threads, progress_meter& meter);
  u64 vertex_of(u64 id) const;
  rules line_rules() const;
  std::string column(u64 place) const;
  template <class F>
  void each_edge(block_lines const& lines, F const& f) const;

  text_blocks blocks_;
  text_dialect dialect_;
  weight_type weights_ = weight_type::none;
  char separator_ = 0;
  bool chosen_ = false;  ///< that columns were named, so that a line may have more
  column_places places_{};
  u64 first_id_ = 0;
  u64 last_id_;
  u64 vertices_ = 0;
  u64 edges_ = 0;
  u64 arcs_ = 0;  ///< that the header of a .gr file promises
  bool undirected_ = false;
  bool header_ = false;
  u64 header_block_ = 0;  ///< the block that has the header, and its first byte in the file
  u64 header_at_ = 0;
  std::vector<std::string> titles_{};  ///< the columns' names
  std::vector<u64> ids_{};             ///< of the vertices, less first_id_, where they were numbered
};

}  // namespace penstock::graph
