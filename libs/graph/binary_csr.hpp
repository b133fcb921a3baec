// A CSR whose arrays lie somewhere in one or several binary files, in whatever integers the format has: the formats differ in
// where, and in what their headers say. Offsets are held in memory, edges are read block by block.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "libs/graph/file.hpp"

#include <string>
#include <vector>

namespace penstock::graph {

enum class item_type : u8 { int32, uint32, uint64 };

constexpr u64 bytes_of(item_type type) { return type == item_type::uint64 ? 8 : 4; }

/// An array of numbers in one of the files.
struct csr_column {
  std::size_t input = 0;  ///< which file
  u64 begin = 0;          ///< byte in the file
  u64 stride = 0;         ///< bytes from one item to the next
  item_type type = item_type::uint32;
};

struct csr_layout {
  std::vector<byte_input> inputs{};
  u64 vertices = 0;
  u64 edges = 0;
  bool directed = true;
  weight_type weights = weight_type::none;
  bool closing_offset = true;  ///< whether the number of edges is stored behind the offset of the last vertex
  csr_column offsets{};
  csr_column targets{};
  csr_column weight_values{};     ///< uint32 stands for any 4 bytes
  bool unsigned_weights = false;  ///< they are uint32, and must fit int32
  std::string remark{};           ///< what was put right, in one sentence
};

class binary_csr : public edge_source {
 public:
  /// Reads the offsets and checks that they begin at 0, never go back, and end at the number of edges.
  /// REQUIRES: the arrays lie within their files.
  /// Errors: bad_input naming what is wrong; world when a file cannot be read.
  explicit binary_csr(csr_layout layout);

  bool directed() const { return layout_.directed; }
  u64 vertices() const final { return layout_.vertices; }
  u64 edges() const { return layout_.edges; }
  /// What in the files was wrong and could be put right, in one sentence; else empty.
  std::string const& remark() const { return layout_.remark; }
  weight_type weights() const final { return layout_.weights; }
  u64 blocks() const final { return (edges() + block_edges - 1) / block_edges; }
  void produce(u64 block, edge_sink const& sink) const final;
  u64 held_bytes() const final { return offsets_.size() * sizeof(u64); }

 private:
  static constexpr u64 block_edges = u64{1} << 18;

  std::string const& name_of(csr_column const& column) const { return layout_.inputs[column.input].name(); }
  u64 stored_offsets() const { return vertices() + (layout_.closing_offset ? 1 : 0); }
  void read_offsets();
  void check_offsets() const;
  std::vector<std::byte> read_items(csr_column const& column, u64 begin, u64 end) const;
  u64 checked_target(std::byte const* at, u64 position) const;
  u32 checked_weight(std::byte const* at, u64 position) const;

  csr_layout layout_;
  std::vector<u64> offsets_;
};

}  // namespace penstock::graph
