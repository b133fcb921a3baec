// A set is a small cache of its own: what happens when its seven ways are not enough, while the others stand empty.
#include "support/faulty_cache.hpp"

#include <deque>

namespace penstock::test {
namespace {

class set_limits_test : public faulty_cache {
 protected:
  u64* set_of(u64 line) { return view().directory.set_of(view().directory.map.mix(line)); }

  /// The first lines that fall into the set of line 0, one more than it has ways. REQUIRES: made.
  std::vector<u64> neighbours() {
    std::vector<u64> found;
    for (u64 line = 0; found.size() <= set_ways && line < 128; ++line) {
      if (set_of(line) == set_of(0)) found.push_back(line);
    }
    EXPECT_EQ(set_ways + 1, found.size());
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(directories, set_limits_test, testing::Values(directory_kind::set_associative),
                         [](auto const& kind) { return name_of(kind.param); });

TEST_P(set_limits_test, a_set_full_of_pins_is_an_error_within_the_patience) {
  make({.frames = 70, .timeout_ns = 10 * one_millisecond_ns});
  const std::vector<u64> lines = neighbours();
  {
    std::deque<pinned_line<lone_thread>> held;
    for (u32 k = 0; k < set_ways; ++k) held.emplace_back(lone_thread(), words_.reader(), line_id{lines[k]});
    const u64 begun = now_ns();
    EXPECT_EQ(make_status(failure::no_frame), read(lines[set_ways]));
    EXPECT_EQ(make_status(failure::no_frame), pin_and_release(lines[set_ways]));
    EXPECT_LT(now_ns() - begun, far_off_ns);
    for (u64 line = 0; line < 128; ++line) {
      if (set_of(line) == set_of(0)) continue;
      EXPECT_EQ(status{}, read(line)) << "other sets have room";
    }
  }
  EXPECT_EQ(status{}, read(lines[set_ways]));
  expect_at_rest();
}

// Pins wait it out; reads have as long as a busy machine and a sanitizer may need.
constexpr u64 pin_timeout_ns = one_second_ns;

// Reads are served in two rounds; pins are all or nothing, so eight of them can never be.
TEST_P(set_limits_test, a_group_may_read_more_lines_of_one_set_than_it_has_ways_but_not_pin_them) {
  for (const bool bounce : {false, true}) {
    check_report report;
    make({.frames = 70, .bounce = bounce, .timeout_ns = far_off_ns});
    std::vector<u64> lines = neighbours();
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
    make({.frames = 70, .bounce = bounce, .timeout_ns = pin_timeout_ns});
    lines = neighbours();
    run_emulated_warp(0xffu, [&](emulated_warp const& g) {
      PENSTOCK_CHECK_EQ(report, make_status(failure::no_frame), pin(g, words_, lines[g.rank()] * line_words).error());
    });
    expect_clean(report);
    expect_at_rest();
  }
}

}  // namespace
}  // namespace penstock::test
