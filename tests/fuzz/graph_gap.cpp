// GAP's serialized graphs: whatever the bytes, either an error in one sentence or as many edges as the header says, all in
// range.
#include "apps/graph/gap_serialized.hpp"
#include "penstock/host/error.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::graph;
  if (size == 0) return 0;
  try {
    gap_serialized const gap(byte_input(std::as_bytes(std::span(data, size)).subspan(1), "input.sg"), (data[0] & 1) != 0);
    u64 count = 0, last = 0;
    for (u64 b = 0; b < gap.blocks(); ++b)
      gap.produce(b, [&](std::span<edge const> edges) {
        for (edge const& e : edges) {
          if (e.from >= gap.vertices() || e.to >= gap.vertices() || e.from < last) std::abort();
          last = e.from;
          ++count;
        }
      });
    if (count != gap.edges()) std::abort();
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
  }
  return 0;
}
