// Kernels over rows under emulated warps and lone threads.
#include "device/rows_test_body.hpp"

#include "penstock/host/executor.hpp"
#include "support/emulated_warp.hpp"

#include <gtest/gtest.h>

namespace penstock::test {
namespace {

constexpr u64 seed = 99;

TEST(rows, are_gathered_by_parts_of_warps) {
  check_report report;
  check_gathers(open_executor("cpu", 1)->memory(), report, seed, [](auto width, u64 items, auto const& body) {
    constexpr u32 lanes = decltype(width)::value, groups = 32 / lanes;
    std::vector<lane_mask> masks;
    for (u32 k = 0; k < groups; ++k)
      masks.push_back((lanes == 32 ? ~lane_mask{0} : (lane_mask{1} << lanes) - 1) << (k * lanes));
    std::vector<lane_assignment> assigned;
    for (lane_mask mask : masks) assign_group(assigned, 0, mask);
    run_lanes(assigned, [&](emulated_warp const& g, lane_assignment const&) {
      body(g, grid_range{lowest(g.members()) / lanes, items, groups});
    });
  });
  EXPECT_TRUE(report.clean()) << "line " << report.first_line << ": " << report.expected << ", not " << report.found;
}

TEST(rows, are_gathered_by_lone_threads) {
  check_report report;
  check_gathers(open_executor("cpu", 1)->memory(), report, seed, [](auto, u64 items, auto const& body) {
    for (u64 k = 0; k < 3; ++k) body(lone_thread{}, grid_range{k, items, 3});
  });
  EXPECT_TRUE(report.clean()) << "line " << report.first_line << ": " << report.expected << ", not " << report.found;
}

}  // namespace
}  // namespace penstock::test
