// Headers of .npy files: whatever the bytes, either an error in one sentence or a header that fits the file's size and that
// make_npy_header writes again to the same meaning. Also graph.json, behind a first byte that chooses.
#include "libs/graph/graph_json.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <cstdlib>

namespace {

using namespace penstock;

void check_npy(std::span<std::byte const> bytes) {
  npy_header const header = parse_npy_header(bytes, bytes.size(), "input.npy");
  if (header.data_offset + header.data_bytes() != bytes.size()) std::abort();
  if (header.fortran) return;
  // make_npy_header has no data, so give the size that the shape needs.
  std::string const again = make_npy_header(header.kind, header.item_bytes, header.shape);
  npy_header const second = parse_npy_header(std::as_bytes(std::span(again)), again.size() + header.data_bytes(), "again.npy");
  if (second.kind != header.kind || second.item_bytes != header.item_bytes || second.shape != header.shape) std::abort();
}

void check_json(std::string_view text) {
  graph::graph_facts const facts = graph::parse_graph_json(text, "graph.json");
  if (graph::parse_graph_json(graph::to_json(facts), "again") != facts) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    if (data[0] == '{')
      check_json({reinterpret_cast<char const*>(data), size});
    else
      check_npy(std::as_bytes(std::span(data, size)));
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
  }
  return 0;
}
