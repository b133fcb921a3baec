// BARs that are mapped when they are first stored to, over files in place of a device's resources.
#include "src/pcie/bar_windows.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include <unistd.h>

namespace penstock::pcie {
namespace {

constexpr u64 page = 4096;

struct bar_windows_test : testing::Test {
  std::FILE* const file = std::tmpfile();
  u32 opened = 0;
  bar_windows windows{[this](u32 bar) -> std::unique_ptr<mapped_registers> {
    ++opened;
    if (bar == 5) throw_os_error("map", "BAR 5", EPERM, "it is for root");
    if (bar != 2) return nullptr;
    return std::make_unique<mapped_registers>(fileno(file), 0, 2 * page, "a file");
  }};

  void SetUp() override { ASSERT_EQ(ftruncate(fileno(file), 2 * page), 0); }
  void TearDown() override { std::fclose(file); }

  std::vector<u32> stored(u64 offset, u64 words) const {
    std::vector<u32> all(words);
    EXPECT_EQ(pread(fileno(file), all.data(), words * sizeof(u32), static_cast<off_t>(offset)),
              static_cast<ssize_t>(words * sizeof(u32)));
    return all;
  }
};

TEST_F(bar_windows_test, words_go_where_they_are_sent_and_the_bar_is_mapped_once) {
  const std::vector<u32> words{1, 2, 3, 4};
  EXPECT_TRUE(windows.write(2, 64, words.data(), 16));
  EXPECT_TRUE(windows.write(2, 2 * page - 16, words.data(), 16)) << "its last bytes";
  EXPECT_TRUE(windows.write(2, 2 * page, words.data(), 0));
  EXPECT_EQ(stored(64, 4), words);
  EXPECT_EQ(stored(2 * page - 16, 4), words);
  EXPECT_EQ(stored(80, 1), std::vector<u32>{0}) << "and nowhere else";
  EXPECT_EQ(opened, 1u);
}

TEST_F(bar_windows_test, what_does_not_fit_is_refused_whole) {
  const std::vector<u32> words{1, 2, 3, 4};
  EXPECT_FALSE(windows.write(2, 2 * page - 12, words.data(), 16));
  EXPECT_FALSE(windows.write(2, 2 * page + 4, words.data(), 4));
  EXPECT_FALSE(windows.write(2, ~u64{0} - 3, words.data(), 8)) << "an end that wraps";
  EXPECT_EQ(stored(2 * page - 12, 3), (std::vector<u32>{0, 0, 0}));
}

TEST_F(bar_windows_test, a_bar_that_cannot_be_mapped_is_asked_for_once) {
  const u32 word = 7;
  for (const u32 bar : {4u, 5u, 4u, 5u}) EXPECT_FALSE(windows.write(bar, 0, &word, 4)) << bar;
  EXPECT_EQ(opened, 2u);
}

// As a function that was pulled out: the store ends in SIGBUS, and is told of.
TEST_F(bar_windows_test, a_store_to_what_has_gone_is_told) {
  const u32 word = 7;
  ASSERT_TRUE(windows.write(2, page, &word, 4));
  ASSERT_EQ(ftruncate(fileno(file), page), 0);
  EXPECT_FALSE(windows.write(2, page, &word, 4));
  EXPECT_TRUE(windows.write(2, 0, &word, 4)) << "what is still there";
}

}  // namespace
}  // namespace penstock::pcie
