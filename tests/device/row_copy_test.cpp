// Rows of every width, from and to every alignment, by every kind of group.
#include "penstock/array/row_copy.hpp"

#include "support/emulated_warp.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace penstock::test {
namespace {

constexpr u64 room = 4096, margin = 64;

struct alignas(64) memory {
  u8 bytes[room + 2 * margin];
};

/// Copies with `lanes` lanes and looks at every byte, also at those around.
template <class Unit>
void expect_copied(u32 lanes, u64 from, u64 to, u64 bytes) {
  static memory source, target;
  for (u64 k = 0; k < sizeof source.bytes; ++k) source.bytes[k] = static_cast<u8>(k * 7 + k / 251);
  std::fill_n(target.bytes, sizeof target.bytes, u8{0xee});
  const u64 row = reinterpret_cast<u64>(source.bytes) + margin + from;
  const u64 first = reinterpret_cast<u64>(target.bytes) + margin + to;
  const auto copy = [&](auto const& g) { copy_row<Unit>(g, row, first, bytes); };
  if (lanes == 0) {
    copy(lone_thread{});
  } else {
    run_emulated_warp(lanes == 32 ? ~lane_mask{0} : (lane_mask{1} << lanes) - 1, copy);
  }
  std::vector<u8> wanted(sizeof target.bytes, 0xee);
  for (u64 k = 0; k < bytes; ++k) wanted[margin + to + k] = source.bytes[margin + from + k];
  for (u64 k = 0; k < wanted.size(); ++k) {
    ASSERT_EQ(target.bytes[k], wanted[k]) << "byte " << k << ": " << bytes << " bytes from " << from << " to " << to << ", "
                                          << lanes << " lanes";
  }
}

TEST(row_copy, moves_every_width_between_any_two_alignments) {
  for (const u64 bytes : {1, 3, 15, 16, 17, 31, 36, 100}) {
    for (u64 from = 0; from < 16; ++from) {
      for (const u64 to : {0, 1, 4, 7, 8, 15}) expect_copied<u8>(4, from, to, bytes);
    }
  }
}

TEST(row_copy, moves_words_that_are_not_aligned_to_pieces) {
  for (u64 bytes = 4; bytes <= 160; bytes += 12) {
    for (u64 from = 0; from < 16; from += 4) {
      for (u64 to = 0; to < 16; to += 4) expect_copied<u32>(8, from, to, bytes);
    }
  }
}

TEST(row_copy, goes_on_after_its_first_batches) {
  for (const u32 lanes : {2u, 4u, 16u, 32u}) {
    for (const u64 bytes :
         {u64{16} * lanes * row_pieces_in_flight, u64{16} * lanes * row_pieces_in_flight + 1, u64{1044}, u64{2047}}) {
      for (const u64 from : {0, 1, 12}) {
        for (const u64 to : {0, 5, 15}) expect_copied<u8>(lanes, from, to, bytes);
      }
    }
  }
}

/// Four rows at once, each from and to a place of its own; those without a bit in `wanted` stay as they are.
template <class Unit>
void expect_short_copied(u32 lanes, u64 bytes, u64 from, u64 step, u64 to, u32 wanted, bool repeat) {
  static memory source, target;
  for (u64 k = 0; k < sizeof source.bytes; ++k) source.bytes[k] = static_cast<u8>(k * 11 + k / 241);
  std::fill_n(target.bytes, sizeof target.bytes, u8{0xee});
  std::vector<u8> expected(sizeof target.bytes, 0xee);
  u64 rows[short_rows_at_once], places[short_rows_at_once];
  for (u32 r = 0; r < short_rows_at_once; ++r) {
    const u64 at = margin + from + (repeat ? r / 2 : r) * step;
    const u64 place = margin + to + (short_rows_at_once - 1 - r) * (bytes + sizeof(Unit));
    rows[r] = reinterpret_cast<u64>(source.bytes) + at;
    places[r] = reinterpret_cast<u64>(target.bytes) + place;
    if ((wanted >> r & 1) != 0) std::copy_n(source.bytes + at, bytes, expected.data() + place);
  }
  const auto copy = [&](auto const& g) { copy_short_rows<Unit>(g, row_lanes::all(g), rows, places, bytes, wanted); };
  if (lanes == 0) {
    copy(lone_thread{});
  } else {
    run_emulated_warp((lane_mask{1} << lanes) - 1, copy);
  }
  for (u64 k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(target.bytes[k], expected[k]) << "byte " << k << ": " << bytes << " bytes from " << from << " step " << step
                                            << " to " << to << ", " << lanes << " lanes, wanted " << wanted;
  }
}

TEST(row_copy, copies_several_short_rows_at_once) {
  for (const u32 lanes : {0u, 2u, 4u, 8u}) {
    const u64 most = lanes == 0 ? 100 : 16 * (lanes - 1) - 14;
    for (const u64 bytes : {u64{1}, most / 2 + 1, most}) {
      for (u64 from = 0; from < 16; ++from) {
        for (const u64 to : {0, 1, 7, 8, 15}) {
          expect_short_copied<u8>(lanes, bytes, from, bytes + 3, to, 0xf, false);
          expect_short_copied<u8>(lanes, bytes, from, bytes, to, 0x6, true);
        }
      }
    }
  }
}

TEST(row_copy, needs_no_lane_more_than_an_aligned_short_row_has_pieces) {
  for (const u32 lanes : {2u, 4u, 8u}) expect_short_copied<u32>(lanes, 16 * lanes - 16, 0, 16 * lanes - 16, 0, 0xf, false);
  for (const u32 lanes : {2u, 4u, 8u}) expect_short_copied<u32>(lanes, 16 * lanes - 4, 0, 16 * lanes, 0, 0xb, true);
}

TEST(row_copy, is_a_plain_copy_for_a_lone_thread) {
  for (const u64 bytes : {1, 16, 1000}) expect_copied<u8>(0, 3, 5, bytes);
}

TEST(row_copy, takes_bytes_from_two_pieces) {
  const auto byte = [](piece16 p, u32 k) { return static_cast<u8>((k < 8 ? p.low : p.high) >> 8 * (k % 8)); };
  const piece16 first{0x0706050403020100, 0x0f0e0d0c0b0a0908}, second{0x1716151413121110, 0x1f1e1d1c1b1a1918};
  for (u32 offset = 0; offset < 16; ++offset) {
    const piece16 across = bytes_across(first, second, offset);
    for (u32 k = 0; k < 16; ++k) EXPECT_EQ(byte(across, k), offset + k) << offset;
  }
}

}  // namespace
}  // namespace penstock::test
