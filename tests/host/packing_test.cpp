// Packed columns: what goes in comes out, of any type and width, however the values arrive; and which divisors are exact.
#include "libs/columns/packing.hpp"
#include "libs/columns/column_view.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace penstock::test {
namespace {

using namespace columns;

const std::vector<double> tens{1, 10, 100, 1000, 10000};

template <class T>
std::vector<u64> packed(packed_form const& form, std::vector<T> const& values, u64 at_once) {
  bit_packer packer(form);
  std::vector<u64> words;
  for (u64 first = 0; first < values.size(); first += at_once) {
    packer.append(std::span<T const>(values).subspan(first, std::min(at_once, values.size() - first)), words);
  }
  packer.finish(words);
  return words;
}

template <class T>
std::vector<T> unpacked(packed_form const& form, std::vector<u64> words, u64 rows) {
  words.push_back(~u64{0});
  std::vector<T> values(rows);
  unpack(form, words.data(), std::span<T>(values));
  return values;
}

/// Bit by bit, slowly.
template <class T>
std::vector<u64> reference(packed_form const& form, std::vector<T> const& values) {
  std::vector<u64> words((values.size() * form.bits + 63) / 64);
  for (u64 k = 0; k < values.size(); ++k) {
    for (u64 b = 0; b < form.bits; ++b) {
      const u64 bit = k * form.bits + b;
      words[bit / 64] |= ((static_cast<u64>(values[k]) - form.base) >> b & 1) << bit % 64;
    }
  }
  return words;
}

template <class T>
class packing : public testing::Test {};
using integers = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, u8, u16, u32, u64>;
TYPED_TEST_SUITE(packing, integers);

TYPED_TEST(packing, returns_values_of_every_width) {
  using limits = std::numeric_limits<TypeParam>;
  std::mt19937_64 draw(7);
  for (u32 bits = 0; bits <= std::min<u32>(57, 8 * sizeof(TypeParam)); ++bits) {
    const u64 most = bits == 0 ? 0 : ~u64{0} >> (64 - bits);
    for (const auto low : {limits::min(), static_cast<TypeParam>(static_cast<u64>(limits::max()) - most)}) {
      std::vector<TypeParam> values{low, static_cast<TypeParam>(static_cast<u64>(low) + most)};
      while (values.size() < 200) values.push_back(static_cast<TypeParam>(static_cast<u64>(low) + (draw() & most)));
      const packed_form form{bits, static_cast<u64>(low), 0};
      const auto words = packed(form, values, 200);
      EXPECT_EQ(words, reference(form, values)) << bits;
      EXPECT_EQ(unpacked<TypeParam>(form, words, values.size()), values) << bits;
      for (const u64 at_once : {1, 7, 64}) EXPECT_EQ(packed(form, values, at_once), words) << bits << " by " << at_once;
    }
  }
}

TYPED_TEST(packing, finds_the_range) {
  using limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> values{3, limits::max(), limits::min(), 5};
  const auto found = range_of(std::span<TypeParam const>(values));
  EXPECT_EQ(found.low, limits::min());
  EXPECT_EQ(found.high, limits::max());
}

TEST(packing_of_nulls, stores_what_is_below_the_base_as_0) {
  EXPECT_EQ(packed<std::int32_t>({8, static_cast<u64>(-5), 0}, {-9, -5, -4, std::numeric_limits<int>::min()}, 4),
            std::vector<u64>{0x00010000});
  EXPECT_EQ(packed<u64>({8, u64{1} << 63, 0}, {0, (u64{1} << 63) + 3}, 2), std::vector<u64>{0x0300});
}

TEST(packing_of_doubles, reads_as_the_view_does) {
  const std::vector<double> values{0.01, -12.34, 99999.99, 0, 1e9 + 0.25};
  ASSERT_EQ(exact_divisors(values, tens).front(), 100);
  const packed_form form{47, static_cast<u64>(-1234), 100};
  auto words = packed(form, values, 2);
  EXPECT_EQ(unpacked<double>(form, words, values.size()), values);
  words.push_back(0);
  column_view view;
  view.bytes = array_view<u8>(reinterpret_cast<u8*>(words.data()), words.size() * 8);
  view.how = encoding::packed;
  view.packed_bits = form.bits;
  view.base = form.base;
  view.divisor = form.divisor;
  for (u64 k = 0; k < values.size(); ++k) EXPECT_EQ(std::bit_cast<double>(view.value(k)), values[k]);
}

TEST(exact_divisors, are_those_of_all_values) {
  using list = std::vector<double>;
  const auto of = [](list const& values) { return exact_divisors(values, tens); };
  EXPECT_EQ(of({}), tens);
  EXPECT_EQ(of({0.0, -3.0, 0x1p38}), tens);
  EXPECT_EQ(of({1.5, 0.25}), (list{100, 1000, 10000}));
  EXPECT_EQ(of({0x1p52 - 1}), list{1}) << "its multiples are no longer exact";
  EXPECT_EQ(of({0x1p48 + 1}), (list{1, 10})) << "2^52 is the bound";
  for (const double odd : {-0.0, std::nan(""), 1e-5, 0x1p52, -0x1p52, std::numeric_limits<double>::infinity(), 1.0 / 3}) {
    EXPECT_EQ(of({1.0, odd}), list{}) << odd;
    list late(5000, 2.5);
    late[4999] = odd;
    EXPECT_EQ(of(late), list{}) << odd;
  }
}

TEST(exact_divisors, are_what_each_value_says) {
  std::mt19937_64 draw(11);
  for (int k = 0; k < 20000; ++k) {
    const double scale = std::pow(10.0, static_cast<double>(draw() % 6));
    const double value = static_cast<double>(static_cast<std::int64_t>(draw()) >> draw() % 64) / scale;
    std::vector<double> slow;
    for (const double divisor : tens) {
      const double whole = std::nearbyint(value * divisor);
      const bool exact = std::fabs(whole) < 0x1p52 && whole / divisor == value && (value != 0 || !std::signbit(value));
      if (exact) slow.push_back(divisor);
    }
    ASSERT_EQ(exact_divisors(std::vector{value}, tens), slow) << value;
  }
}

}  // namespace
}  // namespace penstock::test
