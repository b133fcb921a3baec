// METIS graphs: whatever the bytes, either an error in one sentence or edges that are in range, listed at both ends, and the
// same for any block size.
#include "libs/graph/metis_graph.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

using namespace penstock;
using namespace penstock::graph;

using edge_list = std::vector<std::array<u64, 3>>;

edge_list edges_of(metis_graph const& graph) {
  edge_list edges;
  for (u64 b = 0; b < graph.blocks(); ++b)
    graph.produce(b, [&](std::span<edge const> batch) {
      for (edge const& e : batch) {
        if (e.from >= graph.vertices() || e.to >= graph.vertices()) std::abort();
        edges.push_back({e.from, e.to, e.weight});
      }
    });
  return edges;
}

void require_both_ends(edge_list edges) {
  edge_list turned = edges;
  for (auto& e : turned) std::swap(e[0], e[1]);
  std::sort(edges.begin(), edges.end());
  std::sort(turned.begin(), turned.end());
  if (edges != turned) std::abort();
}

std::optional<edge_list> parse(std::span<std::byte const> bytes, u64 block_bytes) {
  progress_meter meter;
  try {
    return edges_of(metis_graph(byte_input(bytes, "input.graph"), 1, meter, block_bytes));
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  auto const bytes = std::as_bytes(std::span(data, size)).subspan(1);
  auto const whole = parse(bytes, 1 << 20);
  if (whole != parse(bytes, 1 + data[0] / 2)) std::abort();
  if (whole) require_both_ends(*whole);
  return 0;
}
