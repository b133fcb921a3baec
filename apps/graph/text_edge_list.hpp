// Edges one per line, in three dialects that differ in what else a line may be:
//     .el   "u v", ids from 0; empty lines, and comment lines that start with # or %
//     .wel  "u v w", the same otherwise
//     .gr   DIMACS 9: "a u v w", ids from 1, int32 weights; comment lines that start with c; before all arcs one line
//           "p sp VERTICES ARCS" (or "p edge"), which must be right
#pragma once

#include "apps/graph/edge_source.hpp"
#include "apps/graph/parallel.hpp"
#include "apps/graph/text_blocks.hpp"

namespace penstock::graph {

enum class text_dialect : u8 { el, wel, gr };

class text_edge_list final : public edge_source {
 public:
  /// Reads all of `input` once, to check each line and to find the number of vertices (.gr says it; else highest id + 1) and
  /// the type of the weights (int32 unless one of them has a fraction or an exponent). Errors: bad_input naming file, line and
  /// field; world when the file cannot be read.
  text_edge_list(byte_input input, text_dialect dialect, unsigned threads, progress_meter& meter,
                 u64 block_bytes = u64{1} << 20);

  u64 vertices() const override { return vertices_; }
  weight_type weights() const override { return weights_; }
  u64 blocks() const override { return blocks_.count(); }
  void produce(u64 block, edge_sink const& sink) const override;
  u64 worthwhile_passes() const override { return 2; }

 private:
  struct findings;

  void find_header();
  findings look_at_all(unsigned threads, progress_meter& meter) const;
  void check_arcs(u64 found) const;
  void parse_block(u64 block, findings* found, edge_sink const* sink) const;

  text_blocks blocks_;
  text_dialect dialect_;
  weight_type weights_ = weight_type::none;
  u64 first_id_ = 0;
  u64 last_id_;
  u64 vertices_ = 0;
  u64 arcs_ = 0;          ///< that the header of a .gr file promises
  u64 header_block_ = 0;  ///< of a .gr file: the block that has its p line, and the line's first byte in the file
  u64 header_at_ = 0;
};

}  // namespace penstock::graph
