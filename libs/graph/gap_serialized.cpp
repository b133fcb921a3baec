#include "libs/graph/gap_serialized.hpp"

#include "penstock/host/error.hpp"

#include <array>
#include <cstring>

namespace penstock::graph {
namespace {

constexpr u64 head_bytes = 17;
constexpr u64 most_vertices = (u64{1} << 31) - 1;  // ids are int32
constexpr u64 most_edges = u64{1} << 48;           // keeps sizes in bytes far from overflow

void check_size(byte_input const& input, csr_layout const& layout, u64 edge_bytes) {
  std::string const counts =
      "its header says " + std::to_string(layout.vertices) + " vertices and " + std::to_string(layout.edges) + " edges";
  if (layout.vertices > most_vertices || layout.edges > most_edges)
    throw_bad_input("read", input.name(), counts + ", more than the format holds: this is no GAP graph");
  u64 const one = (layout.vertices + 1) * 8 + layout.edges * edge_bytes;
  u64 const expected = head_bytes + (layout.directed ? 2 : 1) * one;
  if (expected != input.size())
    throw_bad_input("read", input.name(),
                    counts + ", which take " + std::to_string(expected) + " bytes, the file has " +
                        std::to_string(input.size()) + ": get the file again, or name it .sg (no weights) or .wsg");
}

}  // namespace

csr_layout gap_serialized::read_header(byte_input input, bool weighted) {
  if (input.size() < head_bytes)
    throw_bad_input(
        "read", input.name(),
        "truncated: a GAP graph starts with 17 bytes, the file has " + std::to_string(input.size()) + ": get the file again");
  std::array<std::byte, head_bytes> header;
  input.read(0, header);
  if (header[0] > std::byte{1})
    throw_bad_input("read", input.name(),
                    "its first byte is " + std::to_string(static_cast<unsigned>(header[0])) +
                        ", neither 0 (undirected) nor 1 (directed): this is no GAP graph");
  csr_layout layout;
  layout.directed = header[0] == std::byte{1};
  std::memcpy(&layout.edges, header.data() + 1, 8);
  std::memcpy(&layout.vertices, header.data() + 9, 8);
  u64 const edge_bytes = weighted ? 8 : 4;
  check_size(input, layout, edge_bytes);
  u64 const targets_begin = head_bytes + (layout.vertices + 1) * 8;
  layout.offsets = {0, head_bytes, 8, item_type::uint64};
  layout.targets = {0, targets_begin, edge_bytes, item_type::int32};
  if (weighted)
    layout.weights = weight_type::int32, layout.weight_values = {0, targets_begin + 4, edge_bytes, item_type::uint32};
  layout.inputs.push_back(std::move(input));
  return layout;
}

}  // namespace penstock::graph
