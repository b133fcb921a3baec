#include "libs/graph/bel_family.hpp"

#include "penstock/host/error.hpp"

namespace penstock::graph {
namespace {

constexpr u64 header_bytes = 16;
constexpr u64 most_items = u64{1} << 48;  // keeps sizes in bytes far from overflow

/// The count at the head of a file.
u64 read_count(byte_input const& input) {
  if (input.size() < header_bytes)
    throw_bad_input(
        "read", input.name(),
        "truncated: a .bel file starts with 16 bytes, the file has " + std::to_string(input.size()) + ": get the file again");
  u64 count = 0;
  input.read(0, std::as_writable_bytes(std::span(&count, 1)));
  return count;
}

/// The number of items of a file that must have as many as its head says.
u64 checked_count(byte_input const& input, u64 item_bytes) {
  u64 const count = read_count(input), bytes = input.size();
  if (count > most_items || header_bytes + count * item_bytes != bytes)
    throw_bad_input("read", input.name(),
                    "its header says " + std::to_string(count) + " items of " + std::to_string(item_bytes) +
                        " bytes after the first 16, the file has " + std::to_string(bytes) + " bytes: get the file again");
  return count;
}

/// The number of vertices: one less than offsets.
u64 count_vertices(byte_input const& input, u64 edges, std::string& remark) {
  u64 const count = read_count(input), data = input.size() - header_bytes;
  if (data == 0 || data % 8 != 0)
    throw_bad_input("read", input.name(),
                    "its " + std::to_string(input.size()) + " bytes are no 16 and offsets of 8 bytes: get the file again");
  u64 const stored = data / 8;
  std::string const says = "its header says " + std::to_string(count) + " offsets, its size " + std::to_string(stored);
  if (count != stored && count != edges) throw_bad_input("read", input.name(), says + ": get the file again");
  if (count != stored)
    remark = "read " + input.name() + ": " + says + ": the first is the number of edges, so the size was taken";
  return stored - 1;
}

}  // namespace

csr_layout bel_family::read_headers(byte_input offsets, byte_input targets, std::optional<byte_input> weights) {
  csr_layout layout;
  layout.edges = checked_count(targets, 8);
  layout.vertices = count_vertices(offsets, layout.edges, layout.remark);
  layout.offsets = {0, header_bytes, 8, item_type::uint64};
  layout.targets = {1, header_bytes, 8, item_type::uint64};
  if (weights) {
    if (u64 const count = checked_count(*weights, 4); count != layout.edges)
      throw_bad_input(
          "read", weights->name(),
          "has " + std::to_string(count) + " weights for " + std::to_string(layout.edges) + " edges: get the file again");
    layout.weights = weight_type::int32;
    layout.weight_values = {2, header_bytes, 4, item_type::uint32};
  }
  layout.inputs.push_back(std::move(offsets));
  layout.inputs.push_back(std::move(targets));
  if (weights) layout.inputs.push_back(std::move(*weights));
  return layout;
}

}  // namespace penstock::graph
