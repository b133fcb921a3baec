#include "libs/volume/probe.hpp"

#include "libs/volume/format.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace penstock::volumes {
namespace {

using namespace std::string_view_literals;

constexpr u64 looked_at = u64{192} << 10;
constexpr std::string_view raid_magic = "\xfc\x4e\x2b\xa9"sv;

struct signature {
  u64 offset;
  std::string_view bytes;
  char const* what;
};

// As the formats' own documents have them. What is more telling comes first: a boot record is on many things.
constexpr signature signatures[] = {
    {512, "EFI PART"sv, "a partition table (GPT)"},
    {4096, "EFI PART"sv, "a partition table (GPT)"},
    {1080, "\x53\xef"sv, "an ext2, ext3 or ext4 file system"},
    {0, "XFSB"sv, "an XFS file system"},
    {65600, "_BHRfS_M"sv, "a Btrfs file system"},
    {1024, "\x10\x20\xf5\xf2"sv, "an F2FS file system"},
    {0, "hsqs"sv, "a SquashFS file system"},
    {3, "NTFS    "sv, "an NTFS file system"},
    {3, "EXFAT   "sv, "an exFAT file system"},
    {32769, "CD001"sv, "an ISO 9660 file system"},
    {4086, "SWAPSPACE2"sv, "swap space"},
    {0, "LUKS\xba\xbe"sv, "an encrypted volume (LUKS)"},
    {0, raid_magic, "a member of a RAID (md)"},
    {4096, raid_magic, "a member of a RAID (md)"},
    {4120, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca"sv, "a bcache device"},
    {0, "LABELONE"sv, "a physical volume of LVM"},
    {512, "LABELONE"sv, "a physical volume of LVM"},
    {1024, "LABELONE"sv, "a physical volume of LVM"},
    {1536, "LABELONE"sv, "a physical volume of LVM"},
    {510, "\x55\xaa"sv, "a partition table (MBR) or a boot record"},
};

bool begins(std::span<std::byte const> bytes, std::string_view with) {
  const auto same = [](std::byte a, char b) { return a == static_cast<std::byte>(b); };
  return std::ranges::equal(bytes.first(with.size()), with, same);
}

std::string volume_in(std::span<std::byte const> bytes) {
  for (const u64 place : superblock_places) {
    if (place + superblock_bytes > bytes.size()) continue;
    const found_superblock found = decode(bytes.subspan(place, superblock_bytes));
    if (found.state == superblock_state::valid)
      return "member " + std::to_string(found.block.member) + " of volume " + to_text(found.block.id);
    if (found.state == superblock_state::newer) return "a member of a volume of a newer Penstock";
    if (found.state == superblock_state::damaged) return "a member of a volume whose superblock is damaged";
  }
  return {};
}

/// Where formats 0.90 and 1.0 of md have their superblocks.
bool has_raid_at_end(member& from) {
  if (from.bytes() < end_probed_bytes) return false;
  constexpr u64 old_unit = u64{64} << 10;
  const u64 places[] = {from.bytes() / old_unit * old_unit - old_unit, (from.bytes() / page_bytes - 2) * page_bytes};
  std::array<std::byte, page_bytes> bytes;
  return std::ranges::any_of(places, [&](u64 place) {
    const piece one{place, bytes.data(), bytes.size()};
    from.read(std::span(&one, 1));
    return begins(bytes, raid_magic);
  });
}

}  // namespace

probed probe(member& from) {
  std::vector<std::byte> bytes(std::min(looked_at, from.bytes() - from.bytes() % page_bytes));
  const piece all{0, bytes.data(), bytes.size()};
  from.read(std::span(&all, 1));
  probed found;
  found.blank = std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
  found.holds = volume_in(bytes);
  for (signature const& each : signatures) {
    if (!found.holds.empty() || each.offset + each.bytes.size() > bytes.size()) continue;
    if (begins(std::span(bytes).subspan(each.offset), each.bytes)) found.holds = each.what;
  }
  if (found.holds.empty() && has_raid_at_end(from)) found.holds = "a member of a RAID (md)";
  return found;
}

}  // namespace penstock::volumes
