// The entry's word: its fields, what a validated read compares, and the words of a claim and of an eviction.
#include "penstock/cache/entry.hpp"

#include <gtest/gtest.h>

#include <random>

namespace penstock {
namespace {

using namespace entry;

constexpr u32 all_place_bits[] = {1, 2, 7, 13, 20, 23, 30};

TEST(entry, fields_fill_the_word_and_do_not_overlap) {
  EXPECT_EQ(~0ull, (~0ull << pin_shift) ^ identity_mask ^ referenced_bit ^ dirty_bit ^ writing_bit ^ 3ull);
  EXPECT_EQ(48u, pin_shift);
  EXPECT_EQ(one_pin * most_pins, 1ull << 63);  // the field counts twice the limit
  EXPECT_EQ(same_mask, identity_mask | 3ull);
  for (u32 state_value = 0; state_value < 4; ++state_value) {
    const u64 e = 7 * one_pin | identity_mask | dirty_bit | state_value;
    EXPECT_EQ(static_cast<line_state>(state_value), state(e));
    EXPECT_EQ(7u, pins(e));
  }
  EXPECT_EQ(line_state::valid, state(static_cast<u64>(line_state::filling) + publish));
  EXPECT_EQ(line_state::failed, state(static_cast<u64>(line_state::filling) + fail));
}

TEST(entry, same_ignores_pins_and_flags_and_nothing_else) {
  const u64 e = 0x1234'5678'9abc'de02ull;
  for (u32 bit = 0; bit < 64; ++bit) {
    const u64 other = e ^ (1ull << bit);
    const bool ignored = bit >= pin_shift || (1ull << bit & (referenced_bit | dirty_bit | writing_bit)) != 0;
    EXPECT_EQ(ignored, same(e, other)) << "bit " << bit;
    EXPECT_EQ(ignored, same(other, e)) << "bit " << bit;
  }
}

TEST(entry, is_at_rest_without_pins_and_writes) {
  const u64 e = identity_mask | static_cast<u64>(line_state::valid);
  EXPECT_TRUE(at_rest(e));
  EXPECT_TRUE(at_rest(e | referenced_bit));
  EXPECT_FALSE(at_rest(e | dirty_bit));
  EXPECT_FALSE(at_rest(e | writing_bit));
  EXPECT_FALSE(at_rest(e + one_pin));
  EXPECT_FALSE(at_rest(e + one_pin * most_pins));
}

TEST(entry, place_and_version_share_the_identity) {
  for (const u32 bits : all_place_bits) {
    const entry_layout layout{bits};
    EXPECT_EQ(43u, bits + layout.version_bits());
    const u64 last = (1ull << bits) - 1;
    for (const u64 place : {u64{0}, last / 2, last}) {
      const u64 e = 3 * one_pin | place << identity_shift | referenced_bit | 2;
      EXPECT_EQ(place, layout.place(e)) << bits;
      EXPECT_EQ(e & ~(last << identity_shift), layout.without_place(e)) << bits;
    }
    EXPECT_EQ(last, layout.place(~0ull));
  }
}

TEST(entry, a_claim_keeps_the_place_and_takes_the_next_version) {
  std::mt19937_64 rng(20);
  for (const u32 bits : all_place_bits) {
    const entry_layout layout{bits};
    const u64 one_version = 1ull << (identity_shift + bits);
    for (u32 round = 0; round < 200; ++round) {
      const u64 e = rng();
      for (const u64 wanted : {0u, 1u, 5u}) {
        const u64 c = layout.claimed(e, wanted);
        EXPECT_EQ(line_state::filling, state(c));
        EXPECT_EQ(wanted, pins(c));
        EXPECT_EQ(0u, c & (referenced_bit | dirty_bit | writing_bit));
        EXPECT_EQ(layout.place(e), layout.place(c));
        EXPECT_EQ(((e & identity_mask) + one_version) & identity_mask, c & identity_mask);
        EXPECT_FALSE(same(c + publish, layout.claimed(c, wanted) + publish));
      }
    }
  }
}

TEST(entry, a_version_wraps_inside_its_field) {
  for (const u32 bits : all_place_bits) {
    const entry_layout layout{bits};
    const u64 place = ((1ull << bits) - 1) << identity_shift;
    const u64 c = layout.claimed(identity_mask, 1);  // the last version
    EXPECT_EQ(one_pin | place | static_cast<u64>(line_state::filling), c) << bits;
  }
}

TEST(entry, a_version_comes_back_after_all_others_only) {
  const entry_layout layout{30};
  const u64 first = 5ull << identity_shift;
  u64 e = layout.claimed(first, 0);
  u64 rounds = 1;
  for (; !same(e, first | static_cast<u64>(line_state::filling)); ++rounds) e = layout.claimed(e, 0);
  EXPECT_EQ(1ull << layout.version_bits(), rounds);
}

TEST(entry, an_evicted_word_keeps_the_version_alone) {
  std::mt19937_64 rng(21);
  for (const u32 bits : all_place_bits) {
    const entry_layout layout{bits};
    for (u32 round = 0; round < 200; ++round) {
      const u64 e = rng();
      const u64 gone = layout.evicted(e);
      EXPECT_EQ(line_state::empty, state(gone));
      EXPECT_EQ(0u, layout.place(gone));
      EXPECT_EQ(0u, gone & ~identity_mask);
      EXPECT_EQ(e & identity_mask & ~(((1ull << bits) - 1) << identity_shift), gone);
      // A frame number may be added to the word of the next claim.
      EXPECT_EQ(1u, layout.place(layout.claimed(gone, 1) + (1ull << identity_shift)));
    }
  }
}

}  // namespace
}  // namespace penstock
