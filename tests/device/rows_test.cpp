// Kernels over rows under emulated warps and lone threads.
#include "device/rows_test_body.hpp"

#include "penstock/executor/executor.hpp"
#include "support/cache_fixture.hpp"
#include "support/emulated_warp.hpp"
#include "support/expect_clean.hpp"
#include "support/scripted_controller.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

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

TEST(rows, behind_a_cache_are_gathered_by_warps_and_lone_threads) {
  const auto on = open_executor("cpu", 2);
  check_report report;
  check_cached_gathers(*on, report, seed, 40, [](auto, u64 items, auto const& body) {
    std::vector<lane_assignment> assigned;
    for (u32 w = 0; w < 2; ++w) assign_group(assigned, w, ~lane_mask{0});
    run_lanes(assigned, [&](emulated_warp const& g, lane_assignment const& a) { body(g, grid_range{a.warp, items, 2}); });
  });
  check_cached_gathers(*on, report, seed + 1, 40, [](auto, u64 items, auto const& body) {
    run_threads(2, [&](u32 k) { body(lone_thread{}, grid_range{k, items, 2}); });
  });
  EXPECT_TRUE(report.clean()) << "line " << report.first_line << ": " << report.expected << ", not " << report.found;
}

TEST(rows, side_by_side_behind_a_cache_are_moved_by_warps_and_lone_threads) {
  const auto on = open_executor("cpu", 2);
  check_report report;
  check_cached_runs(*on, report, seed, [](auto, u64 items, auto const& body) {
    std::vector<lane_assignment> assigned;
    for (u32 w = 0; w < 2; ++w) assign_group(assigned, w, ~lane_mask{0});
    run_lanes(assigned, [&](emulated_warp const& g, lane_assignment const& a) { body(g, grid_range{a.warp, items, 2}); });
  });
  check_cached_runs(*on, report, seed, [](auto, u64 items, auto const& body) {
    run_threads(2, [&](u32 k) { body(lone_thread{}, grid_range{k, items, 2}); });
  });
  EXPECT_TRUE(report.clean()) << "line " << report.first_line << ": " << report.expected << ", not " << report.found;
}

/// Rows of words behind a cache that is smaller than they are, which groups change side by side.
class changed_rows : public testing::TestWithParam<directory_kind> {
 protected:
  static constexpr u64 words = 33, rows = 200, count = 157;  // of a row, most of which lie on two lines; in all; in a list

  changed_rows() {
    std::iota(numbers_.begin(), numbers_.end(), 0);
    std::mt19937_64 random(seed);
    std::shuffle(numbers_.begin(), numbers_.end(), random);
    numbers_.resize(count);
    numbers_[100] = rows;  // outside
    for (u64 k = 0; k < values_.size(); ++k) values_[k] = scatter(k);
    model_.add_namespace(media_.bytes());
    fixture_ = std::make_unique<cache_fixture>(
        *on_, model_, 1, with_directory({.frames = 64, .media_bytes = media_.bytes().size(), .writable = true}, GetParam()));
  }

  rows::row_numbers list() { return {{numbers_.data(), count, 8}, rows, &report_}; }

  template <class Body>
  static void run_by_warps(Body const& body) {
    std::vector<lane_assignment> assigned;
    for (u32 w = 0; w < 2; ++w) assign_group(assigned, w, ~lane_mask{0});
    run_lanes(assigned, [&](emulated_warp const& g, lane_assignment const& a) { body(g, grid_range{a.warp, count, 2}); });
  }

  /// Word w of row r is wanted(what it was, the value for it), where the list names the row.
  template <class Wanted>
  void check(u64 const* found, Wanted const& wanted) const {
    std::vector<u64> expected(rows * words);
    for (u64 i = 0; i < expected.size(); ++i) expected[i] = stamp(i);
    for (u64 k = 0; k < count; ++k) {
      for (u64 w = 0; numbers_[k] != static_cast<long long>(rows) && w < words; ++w) {
        u64& word = expected[static_cast<u64>(numbers_[k]) * words + w];
        word = wanted(word, values_[k * words + w]);
      }
    }
    for (u64 i = 0; i < expected.size(); ++i)
      ASSERT_EQ(expected[i], found[i]) << "word " << i % words << " of row " << i / words;
    EXPECT_EQ(100u, report_.first_bad);
    EXPECT_EQ(0u, report_.failure);
  }

  std::unique_ptr<executor> on_ = open_executor("cpu", 1);
  stamped_media media_{round_up(rows * words * 8, 4096)};
  model_controller model_{shuffled()};
  std::unique_ptr<cache_fixture> fixture_;
  std::vector<long long> numbers_ = std::vector<long long>(rows);
  std::vector<u64> values_ = std::vector<u64>(count * words);
  rows::row_report report_;
};
INSTANTIATE_TEST_SUITE_P(directories, changed_rows, testing::ValuesIn(both_directories),
                         [](auto const& test) { return name_of(test.param); });

TEST_P(changed_rows, are_scattered_by_warps) {
  run_by_warps(rows::scatter_cached<u64>{fixture_->writable(), list(), words, values_.data()});
  fixture_->flush();
  check(media_.words().data(), [](u64, u64 value) { return value; });
}

TEST_P(changed_rows, are_added_to_by_warps) {
  run_by_warps(rows::add_rows<u64>{fixture_->writable(), list(), words, values_.data()});
  fixture_->flush();
  check(media_.words().data(), [](u64 old, u64 value) { return old + value; });
}

TEST_P(changed_rows, in_memory_are_added_to_by_warps) {
  std::vector<u64> memory(rows * words);
  for (u64 i = 0; i < memory.size(); ++i) memory[i] = stamp(i);
  run_by_warps(rows::add_rows<u64>{writable_view<u64>(memory.data(), memory.size()), list(), words, values_.data()});
  check(memory.data(), [](u64 old, u64 value) { return old + value; });
}

// One of 32 rows that a warp changes side by side, on a line that no leader's row lies on.
TEST_P(changed_rows, of_any_lane_that_cannot_be_read_are_told) {
  scripted_controller drive(media_.bytes());
  cache_fixture broken(*on_, drive, 1,
                       with_directory({.frames = 64, .media_bytes = media_.bytes().size(), .writable = true}, GetParam()));
  const auto line_of = [&](u64 k) { return static_cast<u64>(numbers_[k]) * words * 8 / 512; };
  const auto no_leader_is_near = [&](u64 line) {
    for (u64 k = 0; k < count; ++k) {
      if (k % 64 < 2 && line_of(k) + 1 >= line && line_of(k) <= line) return false;
    }
    return true;
  };
  u64 unlucky = 2;
  while (!no_leader_is_near(line_of(unlucky))) ++unlucky;
  const u64 bad_line = line_of(unlucky) * 512;
  drive.answer([&](u64 byte) { return verdict{byte == bad_line ? nvme::code::unrecovered_read_error : u16{0}}; });
  run_by_warps(rows::scatter_cached<u64>{broken.writable(), list(), words, values_.data()});
  EXPECT_EQ(pack({status_domain::nvme, nvme::code::unrecovered_read_error}), report_.failure);
  drive.serve_all();
  broken.flush();
  for (u64 k = 0; k < count; ++k) {
    for (u64 w = 0; numbers_[k] != static_cast<long long>(rows) && w < words; ++w) {
      const u64 at = static_cast<u64>(numbers_[k]) * words + w;
      const bool failed = at * 8 / 512 * 512 == bad_line;
      ASSERT_EQ(failed ? stamp(at) : values_[k * words + w], media_.words()[at]) << "word " << w << " of row " << numbers_[k];
    }
  }
}

}  // namespace
}  // namespace penstock::test
