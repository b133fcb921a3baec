// Sets near each other are a small cache of their own: what happens when their ways are not enough, while others stand empty.
#include "support/faulty_cache.hpp"

#include <deque>

namespace penstock::test {
namespace {

class set_limits_test : public faulty_cache {
 protected:
  u64* set_of(u64 line) { return view().directory.home_of(view().directory.map.mix(line)); }

  /// The first `count` lines that are at home so many sets after the home of line 0. REQUIRES: made.
  std::vector<u64> neighbours(u32 distance, u32 count) {
    std::vector<u64> found;
    for (u64 line = 0; found.size() < count && line < 128; ++line) {
      if (set_of(line) == view().directory.set_after(set_of(0), distance)) found.push_back(line);
    }
    EXPECT_EQ(count, found.size());
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(directories, set_limits_test, testing::Values(directory_kind::set_associative),
                         [](auto const& kind) { return name_of(kind.param); });

TEST_P(set_limits_test, sets_full_of_pins_are_an_error_within_the_patience) {
  make({.frames = 70, .timeout_ns = 10 * one_millisecond_ns});
  const u64 one_more = neighbours(0, set_ways + 1).back();
  {
    std::deque<pinned_line<lone_thread>> held;
    const auto hold = [&](u32 distance) {
      for (u64 line : neighbours(distance, set_ways)) held.emplace_back(lone_thread(), words_.reader(), line_id{line});
    };
    const u32 reach = view().directory.reach();
    ASSERT_EQ(8u, reach) << "of ten sets";
    for (u32 d = 0; d < reach; ++d) hold(d);
    const u64 begun = now_ns();
    EXPECT_EQ(make_status(failure::no_frame), read(one_more));
    EXPECT_EQ(make_status(failure::no_frame), pin_and_release(one_more));
    EXPECT_LT(now_ns() - begun, far_off_ns);
    for (u64 line = 0; line < 128; ++line) {
      bool held_at_home = false;
      for (u32 d = 0; d < reach; ++d) held_at_home |= set_of(line) == view().directory.set_after(set_of(0), d);
      if (held_at_home) continue;
      EXPECT_EQ(status{}, read(line)) << "other homes have room";
    }
  }
  EXPECT_EQ(status{}, read(one_more));
  expect_at_rest();
}

// Pins wait it out; reads have as long as a busy machine and a sanitizer may need.
constexpr u64 pin_timeout_ns = one_second_ns;

// Reads are served in two rounds; pins are all or nothing, so eight of them can never be.
TEST_P(set_limits_test, a_group_may_read_more_lines_of_one_set_than_it_has_ways_but_not_pin_them) {
  for (const bool bounce : {false, true}) {
    check_report report;
    make({.frames = set_ways, .bounce = bounce, .timeout_ns = far_off_ns});
    const std::vector<u64> lines = neighbours(0, set_ways + 1);
    run_emulated_warp(0xffu, [&](emulated_warp const& g) {
      const u64 line = lines[g.rank()];
      u64 word = 0;
      const status outcome = read_line(g, view(), 0, true, line_id{line}, find(line),
                                       [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
      PENSTOCK_CHECK_EQ(report, status{}, outcome);
      PENSTOCK_CHECK_EQ(report, stamp(line * line_words), word);
    });
    run_emulated_warp(0x7fu, [&](emulated_warp const& g) {
      const auto held = pin(g, words_, lines[1 + g.rank()] * line_words);
      PENSTOCK_CHECK_EQ(report, status{}, held.error());
    });
    expect_at_rest();
    make({.frames = set_ways, .bounce = bounce, .timeout_ns = pin_timeout_ns});
    run_emulated_warp(0xffu, [&](emulated_warp const& g) {
      PENSTOCK_CHECK_EQ(report, make_status(failure::no_frame), pin(g, words_, lines[g.rank()] * line_words).error());
    });
    expect_clean(report);
    expect_at_rest();
  }
}

}  // namespace
}  // namespace penstock::test
