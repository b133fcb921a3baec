// Random numbers by counter: known answers, logarithms, orders, ranges.
#include "libs/sampling/draws.hpp"
#include "support/test_context.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace penstock::test {
namespace {

TEST(sampling_draws, have_the_known_answers_of_philox) {
  const auto expect = [](sampling::drawn_pair const& expected, u64 key, sampling::draw_place const& place, u64 index) {
    const sampling::drawn_pair found = sampling::draw_pair(key, place, index);
    EXPECT_EQ(expected.first, found.first);
    EXPECT_EQ(expected.second, found.second);
    for (const u64 half : {0, 1}) {
      if (index >> 63 != 0) continue;
      EXPECT_EQ(half == 0 ? expected.first : expected.second, sampling::draw(key, place, 2 * index + half));
    }
  };
  // Counter words 0 and 1 are the index, 2 the node, 3 the stage; each word of an answer is the upper half of its number, or
  // the lower one of the number before.
  expect({0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c}, 0, {0, 0}, 0);
  expect({0x41c83b0e408f276d, 0x6d5451fda20bc7c6}, ~u64{0}, {~u32{0}, ~u32{0}}, ~u64{0});
  expect({0x94fdccebd16cfe09, 0x24126ea15001e420}, 0x299f31d0a4093822, {0x03707344, 0x13198a2e}, 0x85a308d3243f6a88);
}

TEST(sampling_draws, exponential_numbers_are_logarithms) {
  const auto expect = [](u64 drawn) {
    const long double expected = -std::log(static_cast<long double>(drawn | 1) * 0x1p-64L);
    const double found = sampling::exponential(drawn);
    ASSERT_GT(found, 0) << drawn;
    // Where the number is nearly 1, the end of the series is an absolute error.
    const long double wrong = std::abs(found - expected);
    ASSERT_LE(wrong, 2e-16L + 1e-10L * expected) << drawn << ": " << found << ", not " << expected;
  };
  for (const u64 drawn : {u64{0}, u64{1}, u64{2}, u64{3}, u64{1} << 63, (u64{1} << 63) - 1, ~u64{0}, ~u64{0} - 1})
    expect(drawn);
  for (u32 bit = 0; bit < 64; ++bit) expect(u64{1} << bit), expect(~u64{0} >> bit), expect(~u64{0} - (~u64{0} >> 1 >> bit));
  for (u64 k = 0; k < 1'000'000; ++k) expect(random_word(9, 9, k));
}

TEST(sampling_draws, quotients_that_are_no_double_have_an_order_too) {
  // Bits of a positive double: the smallest, the largest, and any in between.
  const auto number = [](u64 k) {
    constexpr u64 bound = std::bit_cast<u64>(1.7e308);
    const u64 drawn = random_word(6, 6, k);
    return std::bit_cast<double>(k % 7 == 0 ? 1 + drawn % 9 : k % 7 == 1 ? bound - drawn % 9 : 1 + drawn % bound);
  };
  for (u64 k = 0; k < 100'000; ++k) {
    const double a = sampling::exponential(random_word(6, 7, k)), b = number(3 * k);
    const double c = k % 2 == 0 ? number(3 * k + 1) : a, d = k % 2 == 0 ? number(3 * k + 2) : b * (1 + 1e-12);
    const long double left = static_cast<long double>(a) / b, right = static_cast<long double>(c) / d;
    if (std::abs(left - right) < 1e-14L * left) continue;
    ASSERT_EQ(left < right, sampling::ordered_quotient(a, b) < sampling::ordered_quotient(c, d))
        << a << " / " << b << ", " << c << " / " << d;
  }
}

TEST(sampling_draws, numbers_below_a_limit_are_spread_evenly) {
  EXPECT_EQ(0u, sampling::below(0, 7));
  EXPECT_EQ(6u, sampling::below(~u64{0}, 7));
  EXPECT_EQ(3u, sampling::below(u64{1} << 63, 7));
  EXPECT_EQ(0u, sampling::below(~u64{0}, 1));
}

}  // namespace
}  // namespace penstock::test
