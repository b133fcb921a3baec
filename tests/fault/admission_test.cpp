// Threads that outnumber frames: a share of the frames is claimed at a time, the other threads wait in order of arrival, and
// each ends.
#include "support/faulty_cache.hpp"

#include <set>

namespace penstock::test {
namespace {

class admission_test : public faulty_cache {
 protected:
  fill_admission const& turns() { return view().admission; }
  u64 tickets_taken() { return device_ref<u64>(*turns().next).load(relaxed); }
  u64 tickets_back() { return device_ref<u64>(*turns().done).load(relaxed); }

  /// All Reads but those of `lines` stay with the controller.
  void serve_only(std::set<u64> lines) {
    controller_.answer([lines = std::move(lines)](u64 byte) { return verdict{0, !lines.contains(byte / 512)}; });
  }
};
PENSTOCK_UNDER_BOTH_DIRECTORIES(admission_test);

TEST_P(admission_test, a_cache_with_frames_for_all_threads_has_no_tickets) {
  make({.frames = 8192, .media_bytes = 1 << 16});
  EXPECT_FALSE(turns().applies());
  make({.frames = 1});
  EXPECT_TRUE(turns().applies()) << "one fill at a time, but no fewer";
}

TEST_P(admission_test, each_access_gives_its_ticket_back) {
  make({.frames = 8});
  for (u64 line = 0; line < 64; ++line) EXPECT_EQ(status{}, read(line % 20));
  EXPECT_GT(tickets_taken(), 0u);
  EXPECT_EQ(tickets_taken(), tickets_back());
  controller_.fail_all(nvme::code::unrecovered_read_error);
  for (u64 line = 64; line < 100; ++line) EXPECT_EQ(media_error, read(line));
  EXPECT_EQ(tickets_taken(), tickets_back());
  controller_.serve_all();
  expect_at_rest();
}

TEST_P(admission_test, fills_beyond_the_share_wait) {
  make({.frames = 8});
  const u32 most = turns().most, threads = 3 * most;
  ASSERT_EQ(view().frames / 2, most);
  controller_.hold_all();
  check_report report;
  run_threads(threads + 1, [&](u32 i) {
    if (i < threads) return void(PENSTOCK_CHECK_EQ(report, status{}, read(3 * i)));
    PENSTOCK_CHECK(report, wait_until([&] { return tickets_taken() == threads; }));
    // What is admitted gets to the controller, unless lines of one set are in each other's way; nothing else does.
    PENSTOCK_CHECK(report, wait_until([&] { return !direct() || controller_.fetched() == most; }));
    for (u32 round = 0; round < 200; ++round) {
      std::this_thread::yield();
      PENSTOCK_CHECK(report, controller_.fetched() <= most);
      PENSTOCK_CHECK_EQ(report, 0, tickets_back());
    }
    controller_.serve_all();
  });
  expect_clean(report);
  EXPECT_EQ(threads, tickets_back());
  expect_at_rest();
}

TEST_P(admission_test, lanes_of_one_group_wait_for_their_turn_and_hold_nothing) {
  make({.frames = 2});
  check_report report;
  std::vector<lane_assignment> lanes;
  for (u32 group = 0; group < 2; ++group) {
    for (u32 lane = 0; lane < 8; ++lane) lanes.push_back({group, lane, 0xff});
  }
  run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const& a) {
    for (u64 round = 0; round < 2; ++round) {
      const u64 line = (a.warp * 50 + a.lane * 3 + round) % 100;
      u64 word = 0;
      const status outcome = read_line(g, view(), 0, true, line_id{line}, find(line),
                                       [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
      PENSTOCK_CHECK_EQ(report, status{}, outcome);
      PENSTOCK_CHECK_EQ(report, stamp(line * line_words), word);
    }
  });
  expect_clean(report);
  EXPECT_EQ(tickets_taken(), tickets_back());
  expect_at_rest();
}

// The deadline of a thread that waits for its turn: it tries without it, and whatever comes of that, its turn passes on.
TEST_P(admission_test, a_thread_whose_time_is_up_passes_its_turn_on) {
  make({.frames = 8});
  const u32 most = turns().most;
  controller_.hold_all();
  check_report report;
  std::atomic<bool> over{false};
  run_threads(most + 2, [&](u32 i) {
    if (i < most) return void(PENSTOCK_CHECK_EQ(report, status{}, read(i)));
    PENSTOCK_CHECK(report, wait_until([&] { return tickets_taken() >= most; }));
    if (i == most) {
      line_cache_view hurried = view();
      hurried.patience_ns = 20 * one_millisecond_ns;
      const u64 begun = now_ns();
      const status outcome = read_line(lone_thread(), hurried, 0, true, line_id{90}, find(90), [](u64) {});
      PENSTOCK_CHECK(report, outcome == deadline || outcome == make_status(failure::no_frame));
      PENSTOCK_CHECK(report, now_ns() - begun < far_off_ns);
      over.store(true);
      return;
    }
    PENSTOCK_CHECK(report, wait_until([&] { return over.load(); }));
    PENSTOCK_CHECK_EQ(report, 1, tickets_back());
    controller_.serve_all();
    PENSTOCK_CHECK_EQ(report, status{}, read(100));
  });
  expect_clean(report);
  EXPECT_EQ(tickets_taken(), tickets_back());
  expect_at_rest();
}

/// Where a line's claim shows in its own entry.
class admission_order_test : public admission_test {};
INSTANTIATE_TEST_SUITE_P(direct, admission_order_test, testing::Values(directory_kind::direct),
                         [](auto const& kind) { return name_of(kind.param); });

TEST_P(admission_order_test, turns_come_in_order_of_arrival) {
  make({.frames = 8});
  const u32 most = turns().most, threads = 2 * most;
  controller_.hold_all();
  check_report report;
  run_threads(threads + 1, [&](u32 i) {
    if (i < threads) {
      PENSTOCK_CHECK(report, wait_until([&] { return tickets_taken() == i; }));
      return void(PENSTOCK_CHECK_EQ(report, status{}, read(i)));
    }
    PENSTOCK_CHECK(report, wait_until([&] { return tickets_taken() == threads; }));
    std::set<u64> served;
    for (u64 line = 0; line < threads; ++line) {
      for (u64 later = line + most; later < threads; ++later) PENSTOCK_CHECK(report, state_of(later) == line_state::empty);
      served.insert(line);
      serve_only(served);
      if (line + most >= threads) continue;
      PENSTOCK_CHECK(report, wait_until([&] { return state_of(line + most) == line_state::filling; }));
    }
  });
  expect_clean(report);
  expect_at_rest();
}

}  // namespace
}  // namespace penstock::test
