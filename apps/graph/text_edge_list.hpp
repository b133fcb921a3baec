// Text edge lists: `.el` ("u v" per line) and `.wel` ("u v w"), 0-based, fields separated by blanks, with empty lines and
// comment lines that start with # or %. The file is cut into blocks; a line belongs to the block that its first byte lies in.
#pragma once

#include "apps/graph/edge_source.hpp"
#include "apps/graph/file.hpp"
#include "apps/graph/parallel.hpp"

namespace penstock::graph {

class text_edge_list final : public edge_source {
 public:
  /// Reads all of `input` once, to check each line and to find the number of vertices (highest id + 1) and the type of the
  /// weights (int32 unless one of them has a fraction or an exponent).
  /// Errors: bad_input naming file, line and field; world when the file cannot be read.
  text_edge_list(byte_input input, bool weighted, unsigned threads, progress_meter& meter, u64 block_bytes = u64{1} << 20);

  u64 vertices() const override { return vertices_; }
  weight_type weights() const override { return weights_; }
  u64 blocks() const override;
  void produce(u64 block, edge_sink const& sink) const override;
  u64 worthwhile_passes() const override { return 2; }

 private:
  struct findings;

  std::string read_lines(u64 block) const;
  void parse_block(u64 block, findings* found, edge_sink const* sink) const;
  [[noreturn]] void fail(u64 block, std::string const& lines, char const* at, std::string const& problem) const;

  byte_input input_;
  u64 block_bytes_;
  bool weighted_;
  weight_type weights_ = weight_type::none;
  u64 vertices_ = 0;
};

}  // namespace penstock::graph
