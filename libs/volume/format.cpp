#include "libs/volume/format.hpp"

#include "libs/volume/crc32c.hpp"
#include "libs/volume/little_endian.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <random>

namespace penstock::volumes {
namespace {

// These two and the checksum, which is the last four bytes, stay where they are in all versions.
constexpr u64 superblock_magic = 0x4c4f564b54534e50;  // "PNSTKVOL"
constexpr u64 crc_place = superblock_bytes - sizeof(u32);

bool sound(geometry const& shape) {
  const bool lone = shape.layout == volume_layout::single;
  if (shape.layout > volume_layout::replicated || shape.members == 0 || shape.members > volume_members_limit) return false;
  if (lone && shape.members != 1) return false;
  if (!std::has_single_bit(shape.stripe_bytes) || shape.stripe_bytes < page_bytes || shape.stripe_bytes > most_stripe_bytes) {
    return false;
  }
  constexpr u64 most_member = ~u64{0} / volume_members_limit;
  return shape.header_bytes >= least_header_bytes && shape.header_bytes % shape.stripe_bytes == 0 &&
         shape.member_bytes % shape.stripe_bytes == 0 && shape.member_bytes > shape.header_bytes &&
         shape.member_bytes <= most_member;
}

bool sound(superblock const& block) {
  return sound(block.shape) && block.member < block.shape.members && block.generation != 0 && block.table_bytes != 0 &&
         block.table_bytes % page_bytes == 0 && block.table_bytes <= most_table_bytes;
}

}  // namespace

std::string to_text(uuid const& id) {
  constexpr char const* digits = "0123456789abcdef";
  std::string text;
  for (u64 k = 0; k < id.size(); ++k) {
    if (k == 4 || k == 6 || k == 8 || k == 10) text += '-';
    text += digits[id[k] >> 4];
    text += digits[id[k] & 0xf];
  }
  return text;
}

uuid new_uuid() {
  std::random_device random;
  uuid id;
  for (u8& each : id) each = static_cast<u8>(random());
  id[6] = static_cast<u8>((id[6] & 0x0f) | 0x40);  // RFC 4122: version 4, drawn
  id[8] = static_cast<u8>((id[8] & 0x3f) | 0x80);
  return id;
}

std::string to_text(volume_layout layout) {
  switch (layout) {
    case volume_layout::single: return "single";
    case volume_layout::striped: return "striped";
    case volume_layout::replicated: break;
  }
  return "replicated";
}

volume_layout parse_layout(std::string const& name) {
  for (const auto each : {volume_layout::single, volume_layout::striped, volume_layout::replicated}) {
    if (name == to_text(each)) return each;
  }
  throw_bad_input("create", "a volume", "layout '" + name + "': there is no such layout; choose single, striped or replicated");
}

volume_view geometry::view() const {
  volume_view view;
  view.layout = layout;
  view.members_count = members;
  view.stripe_shift = static_cast<u32>(std::countr_zero(stripe_bytes));
  return view;
}

geometry plan_geometry(volume_layout layout, u32 members, u64 stripe_bytes, u64 least_bytes, std::string const& smallest) {
  const auto refuse = [](std::string const& what) { throw_bad_input("create", "a volume", what); };
  if (members == 0 || members > volume_members_limit) {
    refuse(std::to_string(members) + " members: choose 1 to " + std::to_string(volume_members_limit));
  }
  if (layout == volume_layout::single && members != 1) {
    refuse(std::to_string(members) + " members: a single volume has one; choose layout striped or replicated");
  }
  if (!std::has_single_bit(stripe_bytes) || stripe_bytes < page_bytes || stripe_bytes > most_stripe_bytes) {
    refuse("stripes of " + std::to_string(stripe_bytes) + " bytes: choose a power of two from 4 KiB to 1 GiB");
  }
  geometry shape{layout, members, stripe_bytes, round_up(least_header_bytes, stripe_bytes), 0};
  shape.member_bytes = least_bytes - least_bytes % stripe_bytes;
  if (shape.member_bytes <= shape.header_bytes) {
    throw_bad_input("create", smallest,
                    "it has " + std::to_string(least_bytes) + " bytes, and a member of this volume needs " +
                        std::to_string(shape.header_bytes + stripe_bytes) + " at least: name a larger one");
  }
  if (!sound(shape)) throw_bad_input("create", smallest, "it is larger than a volume can use: make a smaller namespace");
  return shape;
}

std::array<std::byte, superblock_bytes> encode(superblock const& block) {
  std::array<std::byte, superblock_bytes> bytes{};
  field_writer to(bytes);
  to.put(superblock_magic);
  to.put(format_version);
  to.put(block.member);
  to.put(std::span<u8 const>(block.id));
  to.put(block.shape.members);
  to.put(static_cast<u32>(block.shape.layout));
  to.put(block.shape.stripe_bytes);
  to.put(block.shape.header_bytes);
  to.put(block.shape.member_bytes);
  to.put(block.generation);
  to.put(block.table_bytes);
  to.put(block.table_crc);
  field_writer(std::span(bytes).subspan(crc_place)).put(crc32c(std::span(bytes).first(crc_place)));
  return bytes;
}

found_superblock decode(std::span<std::byte const> bytes) {
  found_superblock found;
  field_reader from(bytes);
  if (from.take<u64>() != superblock_magic) return found;
  found.state = superblock_state::damaged;
  if (field_reader(bytes.subspan(crc_place)).take<u32>() != crc32c(bytes.first(crc_place))) return found;
  found.version = from.take<u32>();
  if (found.version > format_version) {
    found.state = superblock_state::newer;
    return found;
  }
  superblock& block = found.block;
  block.member = from.take<u32>();
  from.take(std::span(block.id));
  block.shape.members = from.take<u32>();
  const u32 layout = from.take<u32>();
  block.shape.stripe_bytes = from.take<u64>();
  block.shape.header_bytes = from.take<u64>();
  block.shape.member_bytes = from.take<u64>();
  block.generation = from.take<u64>();
  block.table_bytes = from.take<u64>();
  block.table_crc = from.take<u32>();
  if (layout > static_cast<u32>(volume_layout::replicated)) return found;
  block.shape.layout = static_cast<volume_layout>(layout);
  if (found.version == format_version && sound(block)) found.state = superblock_state::valid;
  return found;
}

}  // namespace penstock::volumes
