// What size and times of a file say about it, and what they do not.
#include "src/controller/file_stamp.hpp"

#include "src/controller/line_ranges.hpp"
#include "support/scratch_files.hpp"

#include <chrono>
#include <random>
#include <set>
#include <thread>

#include <sys/stat.h>

namespace penstock::controllers {
namespace {

struct stat look(std::string const& path) {
  struct stat about;
  EXPECT_EQ(0, stat(path.c_str(), &about));
  return about;
}

TEST(file_stamp, a_file_that_was_changed_just_now_may_change_again_unseen) {
  test_support::scratch_folder scratch;
  std::ofstream(scratch / "file") << "1";
  const file_stamp early = stamp_of(look(scratch / "file"), -1);
  EXPECT_FALSE(early.settled);
  EXPECT_FALSE(early.is_same(early));
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  const file_stamp late = stamp_of(look(scratch / "file"), -1);
  EXPECT_TRUE(late.settled);
  EXPECT_TRUE(late.is_same(late));
  std::ofstream(scratch / "file") << "2";
  EXPECT_FALSE(late.is_same(stamp_of(look(scratch / "file"), -1)));
}

TEST(line_ranges, are_nobody_elses) {
  line_ranges ranges(1000);
  std::mt19937_64 random(7);
  std::vector<line_ranges::extent> used;
  std::set<u64> granules;  // that are in use, or may be in the cache
  const auto mark = [&](line_ranges::extent e) {
    for (u64 k = e.first; k < e.first + e.count; ++k) {
      ASSERT_LT(k, 1000u);
      ASSERT_TRUE(granules.insert(k).second) << k;
    }
  };
  u32 refused = 0;
  for (u32 round = 0; round < 20000; ++round) {
    const u64 count = random() % 16 == 0 ? random() % 200 + 1 : random() % 10 + 1;
    if (const auto taken = ranges.take(count)) {
      EXPECT_EQ(count, taken->count);
      mark(*taken);
      used.push_back(*taken);
    } else {
      ++refused;
      const line_ranges::reclaim reclaim = ranges.begin_reclaim(count, 8);
      EXPECT_LE(reclaim.extents.size(), 8u);
      const bool forgotten = random() % 8 != 0;
      for (line_ranges::extent e : reclaim.extents) {
        for (u64 k = e.first; forgotten && k < e.first + e.count; ++k) granules.erase(k);
      }
      ranges.end_reclaim(reclaim.ticket, forgotten);
    }
    while (!used.empty() && random() % 2 == 0) {
      std::swap(used[random() % used.size()], used.back());
      ranges.retire(used.back());
      used.pop_back();
    }
  }
  EXPECT_GT(refused, 100u);
  for (line_ranges::extent e : used) ranges.retire(e);
  const line_ranges::reclaim all = ranges.begin_reclaim(~u64{0}, ~u64{0});
  EXPECT_EQ(0u, ranges.retired());
  ranges.end_reclaim(all.ticket, true);
  ASSERT_TRUE(ranges.take(1000).has_value()) << "neighbours are one again";
  EXPECT_FALSE(ranges.take(1).has_value());
}

}  // namespace
}  // namespace penstock::controllers
