// Gathers that are shared with threads of the CPU, under emulated warps and lone threads.
#include "device/shared_gather_test_body.hpp"

#include "penstock/executor/executor.hpp"
#include "support/emulated_warp.hpp"
#include "support/expect_clean.hpp"
#include "support/run_threads.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <vector>

namespace penstock::test {
namespace {

constexpr u64 seed = 5;

TEST(shared_gathers, are_done_by_warps) {
  check_report report;
  check_shared_gathers(open_executor("cpu", 1)->memory(), report, seed, false, [](auto width, u64 items, auto const& body) {
    static_assert(decltype(width)::value == 32);
    constexpr u32 warps = 3;
    std::vector<lane_assignment> assigned;
    for (u32 k = 0; k < warps; ++k) assign_group(assigned, k, ~lane_mask{0});
    run_lanes(assigned, [&](emulated_warp const& g, lane_assignment const& a) { body(g, grid_range{a.warp, items, warps}); });
  });
  EXPECT_TRUE(report.clean()) << "line " << report.first_line << ": " << report.expected << ", not " << report.found;
}

TEST(shared_gathers, are_done_by_lone_threads) {
  for (const bool by_one : {true, false}) {
    check_report report;
    check_shared_gathers(open_executor("cpu", 1)->memory(), report, seed, by_one, [&](auto, u64 items, auto const& body) {
      constexpr u32 threads = 4;
      if (!by_one) return run_threads(threads, [&](u32 k) { body(lone_thread{}, grid_range{k, items, threads}); });
      for (u64 k = 0; k < threads; ++k) body(lone_thread{}, grid_range{k, items, threads});
    });
    EXPECT_TRUE(report.clean()) << "line " << report.first_line << ": " << report.expected << ", not " << report.found;
  }
}

TEST(shared_gathers, that_are_over_are_helped_no_more) {
  const auto on = open_executor("cpu", 1);
  const shared_task task(on->memory(), 64, 3 * rows::chunk_rows, false, seed);
  rows::helped_list what;
  task.help(what, 3);
  what.over = true;
  rows::help_gather(what);
  EXPECT_EQ(task.words().begun >> 32, task.number - 1);
}

// Rows that are kept next to the kernels come first, and no thread of the CPU copies them.
TEST(shared_gathers, are_helped_with_rows_that_are_not_kept) {
  const auto on = open_executor("cpu", 1);
  const shared_task task(on->memory(), 64, 6 * rows::chunk_rows, true, seed);
  rows::helped_list what;
  task.help(what, 6);
  rows::help_gather(what);
  const u32 begun = rows::shared_words::chunks(task.words().begun, task.number);
  EXPECT_GE(begun, 3u);
  EXPECT_LE(begun, 4u);
}

TEST(shared_gathers, need_help_with_rows_that_are_far_from_each_other) {
  std::vector<u32> keys(1000);
  rows::helped_list what;
  what.keys = keys.data();
  what.count = keys.size();
  what.rows = u64{1} << 26;
  what.pitch = what.row_bytes = 128;
  what.others = 64;
  const auto needs = [&](u32 first, u32 step) {
    for (u32 k = 0; k < keys.size(); ++k) keys[k] = first + k * step;
    return rows::needs_help(what);
  };
  EXPECT_TRUE(needs(64, 1000));
  EXPECT_FALSE(needs(64, 10));                          // near each other
  EXPECT_FALSE(needs(64, 62));                          // foreseen at 32.3 GB/s
  EXPECT_TRUE(needs(64, 63));                           // at 31.8
  EXPECT_FALSE(needs(64 + (u32{1} << 26) - 9000, 10));  // at the end, too
  EXPECT_TRUE(needs(0, 60'000));                        // the first is kept
  EXPECT_FALSE(needs(64 + (u32{1} << 26), 1000));       // none is a row
  std::fill(keys.begin(), keys.end(), 7u);
  EXPECT_FALSE(rows::needs_help(what));  // all are kept
  what.count = 0;
  EXPECT_FALSE(rows::needs_help(what));
}

TEST(row_helpers, help_with_one_list_after_the_other) {
  auto& helpers = rows::row_helpers::of_process();
  const auto on = open_executor("cpu", 1);
  for (u32 turn = 0; turn < 20; ++turn) {
    const shared_task task(on->memory(), 64, 5 * rows::chunk_rows, false, seed + turn);
    rows::helped_list what, other;
    task.help(what, 5);
    task.help(other, 5);
    helpers.begin(what, 1 + turn % 3);
    helpers.begin(other, 2);  // nobody has time
    helpers.end(other);
    check_report report;
    run_threads(2, [&](u32 k) { task.body(0)(lone_thread{}, grid_range{k, 1, 2}); });
    helpers.end(what);
    EXPECT_EQ(other.begun.load(), 0u);
    EXPECT_EQ(task.check(report), 0u);
    EXPECT_TRUE(report.clean()) << "line " << report.first_line;
  }
}

}  // namespace
}  // namespace penstock::test
