#include "libs/graph/subway_csr.hpp"

#include "penstock/host/error.hpp"

#include <array>

namespace penstock::graph {

csr_layout subway_csr::read_header(byte_input input, bool weighted) {
  if (input.size() < 8)
    throw_bad_input("read", input.name(),
                    "truncated: a .bcsr or .bwcsr graph starts with 8 bytes, the file has " + std::to_string(input.size()) +
                        ": get the file again");
  std::array<u32, 2> header{};
  input.read(0, std::as_writable_bytes(std::span(header)));
  csr_layout layout;
  layout.vertices = header[0];
  layout.edges = header[1];
  u64 const edge_bytes = weighted ? 8 : 4;
  u64 const targets_begin = 8 + 4 * layout.vertices;
  u64 const expected = targets_begin + layout.edges * edge_bytes;
  std::string const counts =
      "its header says " + std::to_string(layout.vertices) + " vertices and " + std::to_string(layout.edges) + " edges";
  if (expected != input.size())
    throw_bad_input("read", input.name(),
                    counts + ", which take " + std::to_string(expected) + " bytes, the file has " +
                        std::to_string(input.size()) + ": get the file again, or name it .bcsr (no weights) or .bwcsr");
  if (layout.vertices == 0 && layout.edges != 0)
    throw_bad_input("read", input.name(), counts + ": edges need vertices, so convert it again");
  layout.offsets = {0, 8, 4, item_type::uint32};
  layout.closing_offset = false;
  layout.targets = {0, targets_begin, edge_bytes, item_type::uint32};
  if (weighted)
    layout.weights = weight_type::int32, layout.weight_values = {0, targets_begin + 4, edge_bytes, item_type::uint32},
    layout.unsigned_weights = true;
  layout.inputs.push_back(std::move(input));
  return layout;
}

}  // namespace penstock::graph
