// GAP's serialized graphs, `.sg` and `.wsg`: a CSR after a header of 17 bytes, so nothing in it is aligned. A directed graph
// carries its inverse after itself, which is not read; an undirected one has both directions already.
#pragma once

#include "apps/graph/edge_source.hpp"
#include "apps/graph/file.hpp"

#include <vector>

namespace penstock::graph {

class gap_serialized final : public edge_source {
 public:
  /// Reads header and offsets and checks them against each other and against the size of the input.
  /// Errors: bad_input naming what disagrees; world when the file cannot be read.
  gap_serialized(byte_input input, bool weighted);

  bool directed() const { return directed_; }
  u64 vertices() const override { return vertices_; }
  u64 edges() const { return edges_; }
  weight_type weights() const override { return weighted_ ? weight_type::int32 : weight_type::none; }
  u64 blocks() const override { return (edges_ + block_edges - 1) / block_edges; }
  void produce(u64 block, edge_sink const& sink) const override;

 private:
  static constexpr u64 block_edges = u64{1} << 18;

  void check_size() const;
  void check_offsets() const;
  u64 edge_bytes() const { return weighted_ ? 8 : 4; }
  u64 first_edge_at() const;

  byte_input input_;
  bool weighted_;
  bool directed_ = false;
  u64 vertices_ = 0;
  u64 edges_ = 0;
  std::vector<u64> offsets_;
};

}  // namespace penstock::graph
