// GAP's serialized graphs: whatever the bytes, either an error in one sentence or as many edges as the header says, all in
// range.
#include "fuzz/sound_csr.hpp"
#include "libs/graph/gap_serialized.hpp"
#include "penstock/host/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::graph;
  if (size == 0) return 0;
  try {
    require_sound(gap_serialized(byte_input(std::as_bytes(std::span(data, size)).subspan(1), "input.sg"), (data[0] & 1) != 0));
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
  }
  return 0;
}
