// Codes of texts: in the order in which they come, as a map of the standard library would have them.
#include "libs/columns/text_codes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace penstock::test {
namespace {

using columns::text_codes;

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
