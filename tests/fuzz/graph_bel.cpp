// EMOGI's families of files: whatever the bytes, either an error in one sentence or as many edges as the headers say, all in
// range. An input is: weights or not, the length of the offsets, that of the neighbours (a byte each, in units of four bytes),
// and the files one after the other.
#include "fuzz/sound_csr.hpp"
#include "libs/graph/bel_family.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <optional>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::graph;
  if (size < 3) return 0;
  auto rest = std::as_bytes(std::span(data, size)).subspan(3);
  auto const next_file = [&](std::size_t bytes, char const* name) {
    auto const file = rest.first(std::min(bytes, rest.size()));
    rest = rest.subspan(file.size());
    return byte_input(file, name);
  };
  byte_input offsets = next_file(4u * data[1], "input.bel.col"), targets = next_file(4u * data[2], "input.bel.dst");
  std::optional<byte_input> weights;
  if ((data[0] & 1) != 0) weights = next_file(rest.size(), "input.bel.val");
  try {
    require_sound(bel_family(std::move(offsets), std::move(targets), std::move(weights)));
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
  }
  return 0;
}
