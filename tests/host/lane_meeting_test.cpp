// Lanes of a warp that meet again, each of them a thread here.
#include "penstock/group/lane_meeting.hpp"
#include "support/check.hpp"
#include "support/expect_clean.hpp"
#include "support/run_threads.hpp"
#include "support/stamped_media.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace penstock::test {
namespace {

constexpr u64 warp_number = 0x1234567890abcdefull;

/// What __syncwarp(mask) is: all lanes of one mask, and no others, are here before any goes on.
class mask_sync {
 public:
  explicit mask_sync(check_report& report) : report_(report) {}

  void operator()(u32 mask, u32 self) {
    PENSTOCK_CHECK(report_, (mask & self) != 0);
    const u64 round = rounds_.load();
    u64 seen = here_.load();
    do {
      if (!PENSTOCK_CHECK(report_, seen == 0 || seen >> 32 == mask)) return;
    } while (!here_.compare_exchange_weak(seen, u64{mask} << 32 | static_cast<u32>(seen) | self));
    if ((static_cast<u32>(seen) | self) == mask) {
      here_.store(0);
      rounds_.fetch_add(1);
      return;
    }
    backoff wait(10 * one_second_ns);
    while (rounds_.load() == round && wait.pause()) {}
    PENSTOCK_CHECK(report_, rounds_.load() != round);
  }

 private:
  check_report& report_;
  std::atomic<u64> here_{0}, rounds_{0};  ///< mask << 32 | lanes of it that are here
};

// As a warp finds them whose block has the shared memory of another.
lane_meeting left_by_others() {
  return {.owner = warp_number, .check = 77, .gate = 0xfedcba9876543210ull, .inside = 0x0f0f0f0fu, .of = 3};
}

void expect_nobody(lane_meeting const& meeting) {
  EXPECT_EQ(0u, meeting.gate);
  EXPECT_EQ(0u, meeting.inside);
}

TEST(lane_meeting, lanes_that_go_on_together_know_each_other) {
  constexpr u32 lanes = 6;
  check_report report;
  lane_meeting meeting = left_by_others();
  mask_sync sync(report);
  std::atomic<u64> sets{0}, members{0};
  run_threads(lanes, [&](u32 lane) {
    const u32 self = 1u << lane;
    for (u32 round = 0; round < 200 + 40 * lane; ++round) {
      const u64 draw = random_word(7, lane, round);
      const u32 at = draw % 16 == 0 ? 2 : 1;
      const u32 all = meeting.arrive(warp_number, self, at, [&](u32 mask) { sync(mask, self); },
                                     {.round_ns = 20 * one_microsecond_ns, .longest_ns = 2 * one_millisecond_ns});
      PENSTOCK_CHECK(report, (all & self) != 0);
      if ((all & (0u - all)) == self) {
        sets.fetch_add(1);
        members.fetch_add(static_cast<u64>(std::popcount(all)));
      }
      meeting.enter(self);
      for (u32 k = 0; k < draw % 8; ++k) std::this_thread::yield();
      meeting.leave(self);
      for (u32 k = 0; k < draw / 8 % 4; ++k) std::this_thread::yield();
    }
  });
  expect_clean(report);
  EXPECT_EQ(lanes * 200 + 40 * 15, members.load()) << "each is in one set a round";
  EXPECT_LE(sets.load(), members.load());
  expect_nobody(meeting);
}

// One is inside when the other comes, which waits until the first has left and come round.
TEST(lane_meeting, a_lane_waits_for_those_inside_to_come_round) {
  check_report report;
  lane_meeting meeting = left_by_others();
  mask_sync sync(report);
  std::atomic<bool> inside{false};
  const lane_meeting::patience endless{.round_ns = 20 * one_second_ns, .longest_ns = 20 * one_second_ns};
  run_threads(2, [&](u32 lane) {
    const u32 self = 1u << lane;
    const auto come = [&] { return meeting.arrive(warp_number, self, 5, [&](u32 mask) { sync(mask, self); }, endless); };
    if (lane == 0) {
      PENSTOCK_CHECK_EQ(report, 1u, come());
      meeting.enter(self);
      inside.store(true);
      while (device_ref<u64>(meeting.gate).load(relaxed) >> 32 != 2) std::this_thread::yield();
      meeting.leave(self);
    } else {
      while (!inside.load()) std::this_thread::yield();
    }
    PENSTOCK_CHECK_EQ(report, 3u, come());
    meeting.enter(self);
    meeting.leave(self);
  });
  expect_clean(report);
  expect_nobody(meeting);
}

// Those inside are at something else, or do not come back.
TEST(lane_meeting, nobody_waits_for_what_does_not_come) {
  lane_meeting meeting = left_by_others();
  const auto no_sync = [](u32) {};
  ASSERT_EQ(1u, meeting.arrive(warp_number, 1, 5, no_sync));
  meeting.enter(1);
  EXPECT_EQ(2u, meeting.arrive(warp_number, 2, 6, no_sync)) << "at another array";
  meeting.enter(2);
  meeting.leave(2);
  const u64 begun = now_ns();
  EXPECT_EQ(4u, meeting.arrive(warp_number, 4, 6, no_sync, {.round_ns = 0, .longest_ns = one_millisecond_ns}));
  EXPECT_GE(now_ns() - begun, one_millisecond_ns) << "lane 0 is still inside, at what the last set came for";
  meeting.enter(4);
  meeting.leave(4);
  const u64 again = now_ns();
  const lane_meeting::patience endless{.round_ns = 20 * one_second_ns, .longest_ns = 20 * one_second_ns};
  EXPECT_EQ(4u, meeting.arrive(warp_number, 4, 6, no_sync, endless)) << "it has waited in vain before";
  EXPECT_LT(now_ns() - again, 10 * one_second_ns);
  meeting.enter(4);
  meeting.leave(4);
  meeting.leave(1);
  expect_nobody(meeting);
}

}  // namespace
}  // namespace penstock::test
