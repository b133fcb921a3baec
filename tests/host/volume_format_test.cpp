// What a volume's members begin with: superblocks, tables, checksums.
#include "libs/volume/contents.hpp"
#include "libs/volume/crc32c.hpp"
#include "libs/volume/format.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace penstock::volumes {
namespace {

using test_support::noise;
using test_support::refusal_of;

constexpr u64 mebibyte = u64{1} << 20;

std::span<std::byte const> bytes_of(std::string const& text) { return std::as_bytes(std::span(text)); }

TEST(crc32c, is_what_rfc_3720_says) {
  std::string rising(32, '\0');
  for (u64 k = 0; k < rising.size(); ++k) rising[k] = static_cast<char>(k);
  const std::pair<std::string, u32> known[] = {{std::string(32, '\0'), 0x8a9136aa},
                                               {std::string(32, '\xff'), 0x62a8ab43},
                                               {rising, 0x46dd794e},
                                               {{rising.rbegin(), rising.rend()}, 0x113fdb5c},
                                               {"123456789", 0xe3069283},
                                               {"", 0}};
  for (auto const& [text, sum] : known) {
    EXPECT_EQ(crc32c(bytes_of(text)), sum);
    EXPECT_EQ(crc32c_by_tables(bytes_of(text)), sum);
  }
}

TEST(crc32c, of_parts_is_that_of_the_whole_by_either_way) {
  const std::string all = noise(1000, 1);
  for (u64 first = 0; first < 40; ++first) {
    for (u64 cut = first; cut < all.size(); cut += 37) {
      const auto a = bytes_of(all).subspan(first, cut - first), b = bytes_of(all).subspan(cut);
      ASSERT_EQ(crc32c(b, crc32c(a)), crc32c_by_tables(bytes_of(all).subspan(first)));
      ASSERT_EQ(crc32c_by_tables(b, crc32c_by_tables(a)), crc32c(bytes_of(all).subspan(first)));
    }
  }
}

superblock some_block() {
  superblock block;
  for (u64 k = 0; k < block.id.size(); ++k) block.id[k] = static_cast<u8>(17 * k);
  block.member = 2;
  block.shape = plan_geometry(volume_layout::striped, 3, 16384, 5 * mebibyte + 4096, "x");
  block.generation = 0x0102030405060708;
  block.table_bytes = 8192;
  block.table_crc = 0xdeadbeef;
  return block;
}

TEST(volume_format, superblocks_come_back_as_they_were) {
  const auto bytes = encode(some_block());
  const found_superblock found = decode(bytes);
  EXPECT_EQ(found.state, superblock_state::valid);
  EXPECT_EQ(found.block, some_block());
}

TEST(volume_format, is_what_the_document_says) {
  const auto bytes = encode(some_block());
  EXPECT_EQ(std::memcmp(bytes.data(), "PNSTKVOL\1\0\0\0\2\0\0\0", 16), 0);
  EXPECT_EQ(to_text(some_block().id), "00112233-4455-6677-8899-aabbccddeeff");
  // Members, layout, stripe, header, size, generation, table.
  const unsigned char rest[] = {3,    0, 0, 0, 1, 0,    0, 0, 0,    0x40, 0, 0, 0,    0,    0,    0,   0, 0,
                                0x10, 0, 0, 0, 0, 0,    0, 0, 0x50, 0,    0, 0, 0,    0,    8,    7,   6, 5,
                                4,    3, 2, 1, 0, 0x20, 0, 0, 0,    0,    0, 0, 0xef, 0xbe, 0xad, 0xde};
  EXPECT_EQ(std::memcmp(bytes.data() + 32, rest, sizeof rest), 0);
}

TEST(volume_format, every_changed_bit_of_a_superblock_is_noticed) {
  const auto whole = encode(some_block());
  for (u64 bit = 0; bit < whole.size() * 8; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const superblock_state expected = bit < 64 ? superblock_state::absent : superblock_state::damaged;
    ASSERT_EQ(decode(bytes).state, expected) << "bit " << bit;
  }
}

TEST(volume_format, a_newer_version_is_told_from_damage) {
  auto bytes = encode(some_block());
  bytes[8] = std::byte{2};
  EXPECT_EQ(decode(bytes).state, superblock_state::damaged);
  const u32 sum = crc32c(std::span(bytes).first(4092));
  std::memcpy(bytes.data() + 4092, &sum, sizeof sum);
  EXPECT_EQ(decode(bytes).state, superblock_state::newer);
  EXPECT_EQ(decode(bytes).version, 2u);
}

TEST(volume_format, superblocks_that_make_no_sense_are_not_taken) {
  const auto refused = [](auto const& change) {
    superblock block = some_block();
    change(block);
    return decode(encode(block)).state == superblock_state::damaged;
  };
  EXPECT_TRUE(refused([](superblock& b) { b.member = 3; }));
  EXPECT_TRUE(refused([](superblock& b) { b.generation = 0; }));
  EXPECT_TRUE(refused([](superblock& b) { b.table_bytes = most_table_bytes + 4096; }));
  EXPECT_TRUE(refused([](superblock& b) { b.table_bytes = 0; }));
  EXPECT_TRUE(refused([](superblock& b) { b.table_bytes = 4095; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.members = 17; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.layout = volume_layout::single; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.layout = static_cast<volume_layout>(3); }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.stripe_bytes = 12288; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.stripe_bytes = 2048; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.header_bytes = 65536; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.member_bytes = b.shape.header_bytes; }));
  EXPECT_TRUE(refused([](superblock& b) { b.shape.member_bytes = ~u64{0} - 16383; }));
}

TEST(volume_format, geometry_lies_as_the_library_reads_stripes) {
  const geometry shape = plan_geometry(volume_layout::striped, 3, 16384, 5 * mebibyte + 20000, "x");
  EXPECT_EQ(shape.header_bytes, mebibyte);
  EXPECT_EQ(shape.member_bytes, 5 * mebibyte + 16384);
  EXPECT_EQ(shape.first(), 3 * mebibyte);
  EXPECT_EQ(value(shape.view().locate(byte_offset{shape.first()}, 0).offset), mebibyte);
  EXPECT_EQ(shape.view().locate(byte_offset{shape.first()}, 0).member, 0u);
  EXPECT_EQ(shape.view().locate(byte_offset{shape.end() - 1}, 0).member, 2u);
  EXPECT_EQ(value(shape.view().locate(byte_offset{shape.end() - 1}, 0).offset), shape.member_bytes - 1);
  const geometry wide = plan_geometry(volume_layout::striped, 2, 4 * mebibyte, 9 * mebibyte, "x");
  EXPECT_EQ(wide.header_bytes, 4 * mebibyte) << "whole stripes";
  EXPECT_EQ(wide.chunk_bytes(), 65536u);
  EXPECT_EQ(shape.chunk_bytes(), 16384u);
}

TEST(volume_format, geometries_that_cannot_be_are_refused) {
  const auto told = [](volume_layout layout, u32 members, u64 stripe, u64 least) {
    return refusal_of(error_kind::bad_input, [&] { plan_geometry(layout, members, stripe, least, "/dev/small"); });
  };
  using enum volume_layout;
  EXPECT_EQ(told(striped, 17, 65536, mebibyte), "create a volume: 17 members: choose 1 to 16");
  EXPECT_EQ(told(single, 2, 65536, mebibyte),
            "create a volume: 2 members: a single volume has one; choose layout striped or replicated");
  EXPECT_EQ(told(striped, 2, 5000, mebibyte),
            "create a volume: stripes of 5000 bytes: choose a power of two from 4 KiB to 1 GiB");
  EXPECT_EQ(told(striped, 2, 65536, mebibyte + 65535),
            "create /dev/small: it has 1114111 bytes, and a member of this volume needs 1114112 at least: name a larger one");
}

geometry small_shape() { return plan_geometry(volume_layout::single, 1, 65536, 4 * mebibyte, "x"); }

contents some_contents() {
  contents all{new_uuid(), 7, {}};
  stored_file array;
  array.name = "features";
  array.array = {'f', false, 4, {10, 100}, 128};
  array.begin = mebibyte;
  array.file_begin = mebibyte + 4096 - 128;
  array.file_bytes = 128 + 4000;
  array.sums_begin = mebibyte + 8192;
  array.bytes = 12288;
  array.sums_crc = 5;
  stored_file other;
  other.name = "social/graph.json";
  other.of_folder = true;
  other.begin = 2 * mebibyte;
  other.file_begin = other.begin;
  other.file_bytes = 77;
  other.sums_begin = other.begin + 4096;
  other.bytes = 8192;
  all.files = {array, other};
  return all;
}

std::string refused_table(std::function<void(contents&)> const& change) {
  contents all = some_contents();
  change(all);
  return refusal_of(error_kind::bad_input, [&] { decode_contents(encode(all), small_shape(), "v"); });
}

TEST(volume_format, tables_come_back_as_they_were) {
  const contents all = some_contents();
  const auto bytes = encode(all);
  EXPECT_EQ(bytes.size() % 4096, 0u);
  EXPECT_EQ(decode_contents(bytes, small_shape(), "v"), all);
}

TEST(volume_format, tables_that_make_no_sense_are_not_taken) {
  EXPECT_EQ(refused_table([](contents&) {}), "nothing was thrown");
  EXPECT_EQ(refused_table([](contents& c) {
              c.files[1].name = "features";
              c.files[1].of_folder = false;
            }),
            "open v: its table of contents is wrong: two files have one name: make it anew");
  EXPECT_EQ(refused_table([](contents& c) { c.files[0].begin += 512; }),
            "open v: its table of contents is wrong: an extent is no whole number of pages: make it anew");
  const auto noticed = [](std::function<void(contents&)> const& change) {
    return refused_table(change).starts_with("open v: its table of contents is wrong: ");
  };
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].begin = 0; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].begin = 4 * mebibyte; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].bytes = ~u64{4095}; }));
  EXPECT_TRUE(noticed([](contents& c) {
    c.files[1] = c.files[0];
    c.files[1].name = "b";
  }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].file_bytes = 4097; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].file_begin -= 1; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].file_begin = ~u64{0}; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].sums_begin += 4096; })) << "no room for checksums";
  EXPECT_TRUE(noticed([](contents& c) { c.files[0].array.shape = {10, 101}; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[0].array.shape = {(u64{1} << 62) + 1000}; })) << "overflow";
  EXPECT_TRUE(noticed([](contents& c) { c.files[0].array.data_offset = 5000; }));
  EXPECT_TRUE(noticed([](contents& c) { c.files[1].array.item_bytes = 4; }));
  EXPECT_TRUE(noticed([](contents& c) { std::swap(c.files[0], c.files[1]); })) << "not by address";
}

TEST(volume_format, names_cannot_lead_out_of_a_folder) {
  for (char const* name : {"social/../x", "social/", "/x", "..", ".", "", "social//x", "a/./b"}) {
    EXPECT_FALSE(problem_of_file_name(name, std::strchr(name, '/') != nullptr).empty()) << name;
  }
  EXPECT_FALSE(problem_of_file_name("a\nb", false).empty());
  EXPECT_FALSE(problem_of_file_name(std::string(256, 'a'), false).empty());
  for (char const* name : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xc3", "\x80"}) {
    EXPECT_FALSE(problem_of_file_name(name, false).empty()) << "no UTF-8";
  }
  for (char const* name : {"a", "x y", "..a", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(problem_of_file_name(name, false), "") << name;
  }
  EXPECT_EQ(problem_of_file_name(std::string(255, 'a'), false), "");
  EXPECT_EQ(problem_of_file_name("social/incoming/edges.npy", true), "");
  EXPECT_FALSE(problem_of_entry_name("a/b").empty());
  EXPECT_TRUE(refused_table([](contents& c) { c.files[1].name = "social/../../etc"; }).find("impossible name") !=
              std::string::npos);
}

TEST(volume_format, room_is_found_in_the_first_gap_that_is_large_enough) {
  const geometry shape = small_shape();
  contents all = some_contents();
  EXPECT_EQ(find_room(all, shape, 4096), mebibyte + 12288);
  EXPECT_EQ(find_room(all, shape, mebibyte - 12288), mebibyte + 12288);
  EXPECT_EQ(find_room(all, shape, mebibyte), 2 * mebibyte + 8192);
  EXPECT_EQ(find_room(all, shape, 2 * mebibyte), 0u);
  EXPECT_EQ(free_bytes(all, shape), 3 * mebibyte - 12288 - 8192);
  all.files.clear();
  EXPECT_EQ(find_room(all, shape, 3 * mebibyte), mebibyte);
  EXPECT_EQ(find_room(all, shape, 3 * mebibyte + 4096), 0u);
}

TEST(volume_format, a_table_has_its_limit) {
  contents all = some_contents();
  all.files.resize(most_files + 1);
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { encode(all); }).find("a volume has room for 895"), std::string::npos);
  all.files.resize(most_files);
  EXPECT_LE(encode(all).size(), most_table_bytes);
}

}  // namespace
}  // namespace penstock::volumes
