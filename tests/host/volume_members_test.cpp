// Members of a volume: which belong together, what is damaged, foreign, missing or old, and what create overwrites.
#include "libs/volume/drive_member.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/make.hpp"
#include "support/volume_files.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace penstock::volumes {
namespace {

using test_support::file_content;
using test_support::put_file;
using test_support::refusal_of;

TEST_F(volume_files, members_that_are_not_all_of_one_volume_are_refused) {
  make({volume_layout::striped, 3, 65536});
  make({volume_layout::striped, 3, 65536}, 4 * mebibyte, "other");
  const auto mine = names(3), others = names(3, "other");
  const auto told = [&](std::vector<std::string> const& which) {
    return refusal_of(error_kind::bad_input, [&] { open(which, access::write); });
  };
  const std::string id = to_text(open(mine).id()), other_id = to_text(open(others).id());
  EXPECT_EQ(told({mine[2], mine[0]}),
            "open volume " + id +
                ": it is striped over 3 members, counted from 0, and these are missing: 1: attach and "
                "name them, too");
  EXPECT_EQ(told({mine[0], others[1], mine[2]}), "open " + others[1] + ": it is of volume " + other_id + ", and " + mine[0] +
                                                     " of " + id + ": name the members of one volume");
  EXPECT_EQ(told({mine[0], mine[1], mine[1], mine[2]}), "open " + mine[1] + ": it is named twice: name each member once");
  put_file(folder_ / "copy", file_content(mine[1]));
  EXPECT_EQ(told({mine[0], mine[1], folder_ / "copy", mine[2]}),
            "open " + (folder_ / "copy") + ": it is member 1 of the volume, and so is " + mine[1] + ": name each member once");
  put_file(folder_ / "plain", std::string(3 * mebibyte, '\0'));
  EXPECT_EQ(told({mine[0], folder_ / "plain"}),
            "open " + (folder_ / "plain") +
                ": it is no member of a volume: name those of one, or make one with penstock volume create");
  EXPECT_NE(told({}).find("no members"), std::string::npos);
  std::filesystem::resize_file(mine[1], 3 * mebibyte);
  EXPECT_EQ(told(mine), "open " + mine[1] +
                            ": it has 3145728 bytes, and the volume lies on 4194304: it was cut short; bring a "
                            "copy of it back");
}

TEST_F(volume_files, damaged_and_newer_superblocks_are_told_apart) {
  make({volume_layout::single, 1, 65536});
  const std::string file = names(1)[0];
  const std::string whole = file_content(file);
  flip(file, 50);
  flip(file, 65536 + 60);
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { open({file}); }),
            "open " + file + ": both of its superblocks are damaged: bring a copy of it back, or make the volume anew");
  put_file(file, whole);
  auto block = decode(std::as_bytes(std::span(whole)).first(4096)).block;
  auto bytes = encode(block);
  bytes[8] = std::byte{9};
  // The checksum of a version 9, which is where ours is.
  const u32 sum = [&] {
    u32 s = ~u32{0};
    for (u64 k = 0; k < 4092; ++k) {
      s ^= static_cast<u32>(bytes[k]);
      for (int bit = 0; bit < 8; ++bit) s = (s >> 1) ^ ((s & 1) != 0 ? 0x82f63b78u : 0);
    }
    return ~s;
  }();
  std::memcpy(bytes.data() + 4092, &sum, 4);
  std::string newer = whole;
  std::memcpy(newer.data() + 65536, bytes.data(), bytes.size());
  put_file(file, newer);
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { open({file}, access::write); }),
            "open " + file + ": its volume is of format version 9, and this Penstock knows 1: use a newer Penstock");
  EXPECT_TRUE(file_content(file) == newer) << "nothing is written";
}

TEST_F(volume_files, a_member_that_missed_changes_is_refused) {
  const layout_case how{volume_layout::replicated, 2, 65536};
  make(how);
  const auto all = names(2);
  put_file(folder_ / "in", "x");
  std::vector<std::string> old{file_content(all[1])};
  for (u32 k = 0; k < 3; ++k) {
    volume to = open(all, access::write);
    import_entry(to, "x" + std::to_string(k), folder_ / "in");
    old.push_back(file_content(all[1]));
  }
  for (u32 k = 0; k < 3; ++k) {
    put_file(all[1], old[k]);
    EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { open(all); }),
              "open " + all[1] + ": it has missed changes of its volume (it is at change " + std::to_string(k + 1) +
                  ", others at 4): bring back the member that has them");
  }
  put_file(all[1], old[3]);
  EXPECT_EQ(open(all).generation(), 4u);
}

TEST_F(volume_files, members_that_went_apart_are_refused) {
  make({volume_layout::replicated, 2, 65536});
  const auto all = names(2);
  const std::vector<std::string> before = contents_of(all);
  put_file(folder_ / "in", "one");
  {
    volume to = open(all, access::write);
    import_entry(to, "x", folder_ / "in");
  }
  const std::string one = file_content(all[0]);
  for (u32 k = 0; k < 2; ++k) put_file(all[k], before[k]);
  put_file(folder_ / "in", "two");
  {
    volume to = open(all, access::write);
    import_entry(to, "x", folder_ / "in");
  }
  put_file(all[0], one);
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { open(all); }).find("it has seen other changes of its volume"),
            std::string::npos);
}

TEST_F(volume_files, create_does_not_overwrite_what_it_knows_unless_told) {
  const std::string file = folder_ / "disk";
  const auto told = [&](make_options options) {
    return refusal_of(error_kind::bad_input, [&] { make_volume({file}, options); });
  };
  std::string ext4(2 * mebibyte, '\0');
  ext4[1080] = '\x53';
  ext4[1081] = '\xef';
  put_file(file, ext4);
  EXPECT_EQ(
      told({.overwrite_unknown = true}),
      "create " + file + ": it holds an ext2, ext3 or ext4 file system: name another member, or --yes-overwrite and lose that");
  std::string something(2 * mebibyte, '\0');
  something[100'000] = 'x';
  put_file(file, something);
  EXPECT_EQ(told({}), "create " + file + ": it is not empty: name another member, or --yes-overwrite and lose what it holds");
  EXPECT_TRUE(file_content(file) == something) << "nothing is written";
  make_volume({file}, {.overwrite_unknown = true});
  const std::string id = to_text(open({file}).id());
  EXPECT_NE(told({.overwrite_unknown = true}).find("it holds member 0 of volume " + id), std::string::npos);
  make_volume({file}, {.overwrite_known = true});
  EXPECT_NE(to_text(open({file}).id()), id);
}

TEST_F(volume_files, every_signature_is_known) {
  const std::pair<u64, std::string> signatures[] = {{510, "\x55\xaa"},          {512, "EFI PART"},    {0, "XFSB"},
                                                    {65600, "_BHRfS_M"},        {4086, "SWAPSPACE2"}, {512, "LABELONE"},
                                                    {4096, "\xfc\x4e\x2b\xa9"}, {32769, "CD001"}};
  for (auto const& [at, bytes] : signatures) {
    std::string image(2 * mebibyte, '\0');
    image.replace(at, bytes.size(), bytes);
    put_file(folder_ / "disk", image);
    EXPECT_FALSE(probe_members({folder_ / "disk"}).front().found.holds.empty()) << bytes;
  }
  put_file(folder_ / "disk", std::string(2 * mebibyte, '\0'));
  EXPECT_EQ(probe_members({folder_ / "disk"}).front().found.holds, "");
  EXPECT_TRUE(probe_members({folder_ / "disk"}).front().found.blank);
}

TEST_F(volume_files, raids_are_known_by_the_ends_of_their_members) {
  for (const u64 more : {u64{0}, u64{512}, u64{69632}}) {
    const u64 bytes = 2 * mebibyte + more;
    for (const u64 at : {bytes / 65536 * 65536 - 65536, (bytes - 8192) / 4096 * 4096}) {
      std::string image(bytes, '\0');
      image.replace(at, 4, "\xfc\x4e\x2b\xa9");
      put_file(folder_ / "disk", image);
      EXPECT_EQ(probe_members({folder_ / "disk"}).front().found.holds, "a member of a RAID (md)") << at;
      make_volume({folder_ / "disk"}, {.overwrite_known = true});
      EXPECT_EQ(file_content(folder_ / "disk").substr(at, 4), std::string(4, '\0')) << at;
    }
  }
}

TEST_F(volume_files, create_leaves_nothing_of_what_was_there_before_data) {
  const std::string file = folder_ / "disk";
  for (const u64 stripe : {u64{65536}, 2 * mebibyte}) {
    put_file(file, std::string(8 * mebibyte, 'x'));
    const volume made = make_volume({file}, {.stripe_bytes = stripe, .overwrite_known = true});
    std::string left = file_content(file);
    EXPECT_EQ(left[made.shape().header_bytes], 'x');
    for (const u64 place : superblock_places) left.replace(place, superblock_bytes, superblock_bytes, '\0');
    left.replace(table_places[1], page_bytes, page_bytes, '\0');
    EXPECT_EQ(left.find_first_not_of('\0'), made.shape().header_bytes);
    EXPECT_EQ(left.find_last_not_of('\0'), left.size() - end_probed_bytes - 1);
  }
}

TEST_F(volume_files, a_create_that_is_refused_leaves_no_files) {
  put_file(folder_ / "m1", std::string(mebibyte, '\0'));
  const auto told = refusal_of(error_kind::bad_input, [&] { make({volume_layout::striped, 2, 65536}); });
  EXPECT_EQ(told, "create " + (folder_ / "m1") +
                      ": it has 1048576 bytes, and a member of this volume needs 1114112 at least: name a larger one");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m0"));
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { make({volume_layout::striped, 2, 65536}, 4096); }).find("a file"),
            std::string::npos);
}

TEST_F(volume_files, drives_are_told_by_their_addresses) {
  EXPECT_EQ(parse_drive_place("0000:01:00.0/2")->address, "0000:01:00.0");
  EXPECT_EQ(parse_drive_place("0000:01:00.0/2")->namespace_id, 2u);
  EXPECT_EQ(parse_drive_place("A1:00.7")->address, "0000:a1:00.7");
  EXPECT_EQ(parse_drive_place("A1:00.7")->namespace_id, 1u);
  for (char const* other : {"./01:00.0", "01:00.8", "01:00.0/", "01:00.0/x", "disk"}) {
    EXPECT_FALSE(parse_drive_place(other).has_value()) << other;
  }
  EXPECT_NE(refusal_of(error_kind::bad_input, [] { parse_drive_place("01:00.0/99999999999"); }).find("namespaces are 1 to"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::volumes
