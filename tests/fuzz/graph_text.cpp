// Text edge lists: whatever the bytes, either an error in one sentence or edges that are in range, the same for any block size.
#include "libs/graph/text_edge_list.hpp"
#include "penstock/host/error.hpp"

#include <cstdlib>
#include <optional>
#include <vector>

namespace {

using namespace penstock;
using namespace penstock::graph;

struct contents {
  u64 vertices = 0;
  weight_type weights = weight_type::none;
  std::vector<u64> edges;

  bool operator==(contents const&) const = default;
};

std::optional<contents> parse(std::span<std::byte const> bytes, text_dialect dialect, u64 block_bytes) {
  progress_meter meter;
  try {
    text_edge_list const list(byte_input(bytes, "input.el"), dialect, 1, meter, block_bytes);
    contents found{list.vertices(), list.weights(), {}};
    for (u64 b = 0; b < list.blocks(); ++b)
      list.produce(b, [&](std::span<edge const> edges) {
        for (edge const& e : edges) {
          if (e.from >= list.vertices() || e.to >= list.vertices()) std::abort();
          found.edges.insert(found.edges.end(), {e.from, e.to, e.weight});
        }
      });
    return found;
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  auto const bytes = std::as_bytes(std::span(data, size)).subspan(1);
  auto const dialect = static_cast<text_dialect>(data[0] % 3);
  if (parse(bytes, dialect, 1 << 20) != parse(bytes, dialect, 1 + data[0] / 2)) std::abort();
  return 0;
}
