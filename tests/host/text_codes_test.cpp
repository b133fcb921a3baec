// Codes of texts: in the order in which they come, as a map of the standard library would have them.
#include "libs/columns/text_codes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace penstock::test {
namespace {

using columns::text_codes;
using columns::text_rows;

TEST(text_codes, count_texts_as_they_come) {
  text_codes codes;
  std::map<std::string, u32> reference;
  std::mt19937_64 draw(3);
  for (int k = 0; k < 50000; ++k) {
    std::string text(draw() % 20, '\0');
    for (char& letter : text) letter = static_cast<char>(draw() % 3);
    const auto code = static_cast<u32>(reference.size());
    ASSERT_EQ(codes.code_of(text), reference.try_emplace(text, code).first->second);
  }
  ASSERT_EQ(codes.size(), reference.size());
  for (auto const& [text, code] : reference) EXPECT_EQ(codes.text(code), text);
}

TEST(text_codes, encode_rows_as_one_after_another) {
  std::mt19937_64 draw(5);
  std::string bytes = "skipped";
  std::vector<std::int64_t> offsets{7};
  std::vector<char> valid;
  for (int k = 0; k < 5000; ++k) {
    bytes += std::to_string(draw() % 700);
    offsets.push_back(static_cast<std::int64_t>(bytes.size()));
    valid.push_back(draw() % 5 != 0);
  }
  for (const bool words : {false, true}) {
    text_codes codes, reference;
    const text_rows rows{offsets, bytes, reinterpret_cast<bool const*>(valid.data()), words};
    std::vector<std::int64_t> found(valid.size());
    codes.encode(rows, found);
    for (u64 k = 0; k < valid.size(); ++k) {
      ASSERT_EQ(found[k], valid[k] ? reference.code_of(rows.at(k)) : words ? reference.code_of_null() : 0) << k;
    }
  }
}

TEST(text_codes, refuse_texts_outside_of_their_bytes) {
  text_codes codes;
  std::vector<std::int64_t> found(1);
  for (std::vector<std::int64_t> const& offsets : {std::vector<std::int64_t>{0, 3}, {2, 1}, {-1, 1}}) {
    EXPECT_THROW(codes.encode({offsets, std::string_view("ab")}, found), std::invalid_argument);
  }
}

TEST(text_codes, know_prefixes_and_zeros_apart) {
  text_codes codes;
  const std::string zeros(40, '\0');
  for (u32 length = 0; length <= 40; ++length) EXPECT_EQ(codes.code_of({zeros.data(), length}), length);
  for (u32 length = 0; length <= 40; ++length) EXPECT_EQ(codes.code_of({zeros.data(), length}), length);
}

TEST(text_codes, have_one_code_for_null_that_is_no_text) {
  text_codes codes;
  EXPECT_EQ(codes.code_of("a"), 0);
  EXPECT_EQ(codes.code_of_null(), 1);
  EXPECT_EQ(codes.code_of(""), 2);
  for (u32 k = 0; k < 100; ++k) EXPECT_EQ(codes.code_of("more " + std::to_string(k)), 3 + k);
  EXPECT_EQ(codes.code_of_null(), 1);
  EXPECT_EQ(codes.code_of(""), 2);
  EXPECT_TRUE(codes.is_null(1));
  EXPECT_FALSE(codes.is_null(2));
}

}  // namespace
}  // namespace penstock::test
