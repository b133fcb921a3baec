// What a volume's member begins with: a superblock and a table of contents, whatever the bytes. The first byte of the input
// says which; so that mutations get past the checksum, the superblock's is put right for every second one.
#include "libs/volume/contents.hpp"
#include "libs/volume/crc32c.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

using namespace penstock;
using namespace penstock::volumes;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_superblock(std::span<std::byte const> input, bool mend) {
  std::array<std::byte, superblock_bytes> bytes{};
  std::copy_n(input.begin(), std::min(input.size(), bytes.size()), bytes.begin());
  if (mend) {
    const u32 sum = crc32c(std::span(bytes).first(superblock_bytes - sizeof(u32)));
    std::memcpy(bytes.data() + superblock_bytes - sizeof sum, &sum, sizeof sum);
  }
  const found_superblock found = decode(bytes);
  if (found.state != superblock_state::valid) return;
  geometry const& shape = found.block.shape;
  require(decode(encode(found.block)).block == found.block);
  require(shape.first() < shape.end() && shape.end() / shape.shares() == shape.member_bytes);
  for (const u64 at : {shape.first(), shape.end() - 1}) {
    const auto place = shape.view().locate(byte_offset{at}, found.block.member);
    require(place.member < shape.members && value(place.offset) < shape.member_bytes &&
            value(place.offset) >= shape.header_bytes);
  }
}

void check_table(std::span<std::byte const> bytes) {
  const geometry shape = plan_geometry(volume_layout::striped, 3, 16384, u64{64} << 20, "fuzz");
  const contents all = decode_contents(bytes, shape, "fuzz");
  require(decode_contents(encode(all), shape, "again") == all);
  u64 end = shape.first();
  for (stored_file const& each : all.files) {
    require(each.begin >= end && each.end() >= each.begin && each.end() <= shape.end());
    require(each.file_begin >= each.begin && each.file_begin + each.file_bytes <= each.sums_begin);
    require(("/" + each.name + "/").find("/../") == std::string::npos && !each.name.starts_with('/') && !each.name.empty());
    end = each.end();
  }
  require(free_bytes(all, shape) <= shape.end() - shape.first());
  const u64 room = find_room(all, shape, page_bytes);
  require(room == 0 || (room >= shape.first() && room + page_bytes <= shape.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    if (data[0] == 't') {
      check_table(rest);
    } else {
      check_superblock(rest, data[0] % 2 == 0);
    }
  } catch (error const& problem) {
    if (problem.kind() != error_kind::bad_input) std::abort();
  }
  return 0;
}
