#include "apps/graph/gap_serialized.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::graph {
namespace {

constexpr u64 header_bytes = 17;
constexpr u64 most_vertices = (u64{1} << 31) - 1;  // ids are int32
constexpr u64 most_edges = u64{1} << 48;           // keeps sizes in bytes far from overflow

}  // namespace

gap_serialized::gap_serialized(byte_input input, bool weighted) : input_(std::move(input)), weighted_(weighted) {
  if (input_.size() < header_bytes)
    throw_bad_input(
        "read", input_.name(),
        "truncated: a GAP graph starts with 17 bytes, the file has " + std::to_string(input_.size()) + ": get the file again");
  std::array<std::byte, header_bytes> header;
  input_.read(0, header);
  if (header[0] > std::byte{1})
    throw_bad_input("read", input_.name(),
                    "its first byte is " + std::to_string(static_cast<unsigned>(header[0])) +
                        ", neither 0 (undirected) nor 1 (directed): this is no GAP graph");
  directed_ = header[0] == std::byte{1};
  std::memcpy(&edges_, header.data() + 1, 8);
  std::memcpy(&vertices_, header.data() + 9, 8);
  check_size();
  offsets_.resize(vertices_ + 1);
  input_.read(header_bytes, std::as_writable_bytes(std::span(offsets_)));
  check_offsets();
}

void gap_serialized::check_size() const {
  std::string const counts =
      "its header says " + std::to_string(vertices_) + " vertices and " + std::to_string(edges_) + " edges";
  if (vertices_ > most_vertices || edges_ > most_edges)
    throw_bad_input("read", input_.name(), counts + ", more than the format holds: this is no GAP graph");
  u64 const one = (vertices_ + 1) * 8 + edges_ * edge_bytes();
  u64 const expected = header_bytes + (directed_ ? 2 : 1) * one;
  if (expected != input_.size())
    throw_bad_input("read", input_.name(),
                    counts + ", which take " + std::to_string(expected) + " bytes, the file has " +
                        std::to_string(input_.size()) + ": get the file again, or name it .sg (no weights) or .wsg");
}

void gap_serialized::check_offsets() const {
  if (offsets_.front() != 0)
    throw_bad_input("read", input_.name(), "offset 0 is " + std::to_string(offsets_.front()) + ", not 0: the file is damaged");
  for (u64 v = 0; v < vertices_; ++v)
    if (offsets_[v + 1] < offsets_[v])
      throw_bad_input("read", input_.name(),
                      "offsets go backwards from vertex " + std::to_string(v) + " (" + std::to_string(offsets_[v]) +
                          ") to the next (" + std::to_string(offsets_[v + 1]) + "): the file is damaged");
  if (offsets_.back() != edges_)
    throw_bad_input("read", input_.name(),
                    "the last offset is " + std::to_string(offsets_.back()) + ", the header says " + std::to_string(edges_) +
                        " edges: the file is damaged");
}

u64 gap_serialized::first_edge_at() const { return header_bytes + (vertices_ + 1) * 8; }

void gap_serialized::produce(u64 block, edge_sink const& sink) const {
  u64 const begin = block * block_edges, end = std::min(begin + block_edges, edges_);
  std::vector<std::byte> bytes((end - begin) * edge_bytes());
  input_.read(first_edge_at() + begin * edge_bytes(), bytes);
  // The last vertex whose list starts at or before `begin`; empty lists before it are skipped below.
  u64 from = static_cast<u64>(std::upper_bound(offsets_.begin(), offsets_.end(), begin) - offsets_.begin()) - 1;
  std::vector<edge> batch;
  for (u64 position = begin; position < end; ++position) {
    while (offsets_[from + 1] <= position) ++from;
    int to = 0;
    edge e{from, 0, 0};
    std::byte const* const at = bytes.data() + (position - begin) * edge_bytes();
    std::memcpy(&to, at, 4);
    if (weighted_) std::memcpy(&e.weight, at + 4, 4);
    if (to < 0 || static_cast<u64>(to) >= vertices_)
      throw_bad_input("read", input_.name(),
                      "edge " + std::to_string(position) + " points to vertex " + std::to_string(to) + ", the graph has " +
                          std::to_string(vertices_) + ": the file is damaged");
    e.to = static_cast<u64>(to);
    batch.push_back(e);
    if (batch.size() == 2048) sink(batch), batch.clear();
  }
  if (!batch.empty()) sink(batch);
}

}  // namespace penstock::graph
