// What runs out: frames, pins, patience. Whoever asks is told in time, or served in the end, however little there is.
#include "support/faulty_cache.hpp"

#include <chrono>
#include <deque>
#include <set>
#include <thread>

namespace penstock::test {
namespace {

using cache_limits_test = faulty_cache;
PENSTOCK_UNDER_BOTH_DIRECTORIES(cache_limits_test);

// A thread that slept through its patience finds what came meanwhile (W7).
TEST_P(cache_limits_test, who_has_no_time_left_still_gets_what_is_there) {
  for (const bool bounce : {false, true}) {
    make({.frames = 8, .queues = 3, .depth = 64, .bounce = bounce});
    line_cache_view hurried = view();
    hurried.patience_ns = 0;
    for (u64 line = 0; line < 40; ++line) {
      u64 word = 0;
      if (line % 4 == 0) run_threads(1, [&](u32) { words_.prefetch(line * line_words); });
      const status outcome = read_line(lone_thread(), hurried, 0, true, line_id{line}, find(line),
                                       [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
      EXPECT_EQ(status{}, outcome) << "line " << line;
      EXPECT_EQ(stamp(line * line_words), word);
    }
    expect_at_rest();
  }
}

/// The lines from `first` to before `end`, held.
std::deque<pinned_line<lone_thread>> hold(array_view<u64> const& words, u64 first, u64 end) {
  std::deque<pinned_line<lone_thread>> held;
  for (u64 line = first; line < end; ++line) held.emplace_back(lone_thread(), words.reader(), line_id{line});
  return held;
}

TEST_P(cache_limits_test, all_frames_pinned_is_an_error_within_the_patience) {
  make({.frames = 2, .timeout_ns = 10 * one_millisecond_ns});
  const u64 all = view().frames;
  {
    const auto first = hold(words_, 0, all - 1);
    {
      const auto second = hold(words_, all - 1, all);
      const u64 begun = now_ns();
      EXPECT_EQ(make_status(failure::no_frame), read(all));
      EXPECT_EQ(make_status(failure::no_frame), pin_and_release(all + 1));
      EXPECT_EQ(0u, words_[(all + 2) * line_words]);
      EXPECT_LT(now_ns() - begun, far_off_ns);
      EXPECT_EQ("read media at byte " + std::to_string((all + 2) * 512) +
                    ": no free frame before the deadline: all that could take the line are pinned or in flight",
                fault_sentence());
      for (u64 line = all; line < all + 3; ++line)
        EXPECT_EQ(0u, entry_at(line) & (~0ull << entry::pin_shift | 3u)) << "nothing is left";
      EXPECT_EQ(stamp(1), words_[1]) << "what is there can be read";
      EXPECT_EQ(stamp((all - 1) * line_words), second.front().load<u64>(0));
    }
    EXPECT_EQ(status{}, read(all));
    EXPECT_EQ(stamp(0), first.front().load<u64>(0));
  }
  EXPECT_EQ(status{}, read(all + 1));
  expect_at_rest();
}

TEST_P(cache_limits_test, who_waits_for_a_frame_gets_the_first_that_is_let_go) {
  make({.frames = 1});
  const u64 all = view().frames;
  check_report report;
  std::atomic<bool> held{false}, asked{false};
  run_threads(2, [&](u32 i) {
    if (i == 0) {
      const auto lines = hold(words_, 0, all);
      for (auto const& line : lines) PENSTOCK_CHECK_EQ(report, status{}, line.error());
      held.store(true);
      while (!asked.load()) std::this_thread::yield();
      // `direct`: a claim came, or a claim and its undo: the version has moved. A set shows nothing of who waits for it.
      if (direct()) PENSTOCK_CHECK(report, wait_until([&] { return entry_at(all) != 0; }));
      return;
    }
    while (!held.load()) std::this_thread::yield();
    u64* entry = nullptr;
    victim_search search;
    const access_step step = view().look(view().datasets[0], line_id{all}, false, true, entry, search);
    PENSTOCK_CHECK(report, step == access_step::no_frame);
    asked.store(true);
    PENSTOCK_CHECK_EQ(report, status{}, read(all));
  });
  expect_clean(report);
  expect_at_rest();
}

// W4: a group that waits for frames holds none of those that it has got, so that others go on meanwhile.
TEST_P(cache_limits_test, a_group_that_waits_for_frames_holds_none) {
  make({.frames = 2, .timeout_ns = 2 * one_second_ns});
  const u64 kept = view().frames - 1;
  check_report report;
  std::atomic<bool> held{false};
  run_lanes({{0, 0, 0b011}, {0, 1, 0b011}, {0, 2, 0b100}}, [&](emulated_warp const& g, lane_assignment const& a) {
    if (a.lane == 2) {
      const auto lines = hold(words_, 0, kept);
      for (auto const& line : lines) PENSTOCK_CHECK_EQ(report, status{}, line.error());
      held.store(true);
      PENSTOCK_CHECK(report, wait_until([&] {
                       const u64 first = entry_at(kept), second = entry_at(kept + 1);
                       return direct() ? first != 0 && second != 0 : first != 0 || second != 0;
                     }));
      for (u64 line = kept + 2; line < kept + 20; ++line) PENSTOCK_CHECK_EQ(report, status{}, read(line));
      return;
    }
    while (!held.load()) std::this_thread::yield();
    PENSTOCK_CHECK_EQ(report, status{}, pin(g, words_, (kept + a.lane) * line_words).error());
  });
  expect_clean(report);
  expect_at_rest();
}

// A search that goes by every frame in use would keep the lanes beside it from lines that are there.
TEST_P(cache_limits_test, a_lane_that_finds_no_frame_keeps_no_other_from_its_line) {
  if (!direct()) GTEST_SKIP() << "a search in a set looks at seven frames";
  constexpr u64 frames = 120;
  make({.frames = frames});
  auto lines = hold(words_, 0, frames);
  const u64 before = device_ref<u64>(*view().policy.hand).load(relaxed);
  u64 looked = 0;
  check_report report;
  run_lanes({{0, 0, 0b11}, {0, 1, 0b11}}, [&](emulated_warp const& g, lane_assignment const& a) {
    const u64 line = a.lane == 0 ? 5 : frames + 1;
    u64 word = 0;
    const status outcome = read_line(g, view(), 0, true, line_id{line}, find(line), [&](u64 frame) {
      word = load_piece(reinterpret_cast<u64 const*>(frame));
      if (a.lane != 0) return;
      looked = device_ref<u64>(*view().policy.hand).load(relaxed) - before;
      lines.pop_front();
    });
    PENSTOCK_CHECK_EQ(report, status{}, outcome);
    PENSTOCK_CHECK_EQ(report, stamp(line * line_words), word);
  });
  expect_clean(report);
  EXPECT_LE(looked, victim_search::brief + 1);
  lines.clear();
  expect_at_rest();
}

// At its deadline it looks at all of them, twice: the first turn takes referenced bits away.
TEST_P(cache_limits_test, the_last_search_goes_by_all_frames) {
  if (!direct()) GTEST_SKIP() << "a search in a set looks at seven frames";
  constexpr u64 frames = 120;
  make({.frames = frames});
  auto lines = hold(words_, 0, frames);
  line_cache_view hurried = view();
  hurried.patience_ns = 0;
  const u64 before = device_ref<u64>(*view().policy.hand).load(relaxed);
  EXPECT_EQ(make_status(failure::no_frame),
            read_line(lone_thread(), hurried, 0, true, line_id{frames}, find(frames), [](u64) {}));
  EXPECT_GE(device_ref<u64>(*view().policy.hand).load(relaxed) - before, 2 * frames);
  lines.clear();
  expect_at_rest();
}

// Its fill under way, a line has the pin of the group that asked for it: a search for a frame would take it before that group
// has read it.
TEST_P(cache_limits_test, a_group_keeps_its_pins_until_it_has_read) {
  make({.frames = 8});
  controller_.hold_all();
  check_report report;
  run_lanes({{0, 0, 0b011}, {0, 1, 0b011}, {0, 2, 0b100}}, [&](emulated_warp const& g, lane_assignment const& a) {
    if (a.lane == 2) {
      PENSTOCK_CHECK(report,
                     wait_until([&] { return state_of(0) == line_state::filling && state_of(1) == line_state::filling; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (const u64 line : {0, 1}) PENSTOCK_CHECK_EQ(report, 1u, entry::pins(entry_at(line)));
      controller_.serve_all();
      return;
    }
    u64 word = 0;
    const status outcome = read_line(g, view(), 0, true, line_id{a.lane}, find(a.lane), [&](u64 frame) {
      word = load_piece(reinterpret_cast<u64 const*>(frame));
      PENSTOCK_CHECK_EQ(report, 1u, entry::pins(entry_at(a.lane)));
    });
    PENSTOCK_CHECK_EQ(report, status{}, outcome);
    PENSTOCK_CHECK_EQ(report, stamp(a.lane * line_words), word);
  });
  expect_clean(report);
  expect_at_rest();
}

TEST_P(cache_limits_test, a_line_takes_no_more_pins_than_can_be_counted) {
  make({.frames = 4, .timeout_ns = 5 * one_millisecond_ns});
  EXPECT_EQ(status{}, read(1));
  const u64 all = entry::one_pin * entry::most_pins;
  device_ref<u64>(*find(1).entry).fetch_add(all, relaxed);
  check_report report;
  run_emulated_warp(0xffffffffu, [&](emulated_warp const& g) {
    PENSTOCK_CHECK_EQ(report, make_status(failure::pin_limit), pin(g, words_, line_words).error());
    PENSTOCK_CHECK_EQ(report, stamp(line_words + 1), words_[line_words + 1]);  // takes none
  });
  expect_clean(report);
  EXPECT_EQ(make_status(failure::pin_limit), pin_and_release(1));
  EXPECT_EQ(entry::most_pins, entry::pins(entry_at(1)));
  device_ref<u64>(*find(1).entry).fetch_sub(all, relaxed);
  EXPECT_EQ(status{}, pin_and_release(1));
  EXPECT_EQ("", fault_sentence());
  expect_at_rest();
}

#ifdef PENSTOCK_TSAN
constexpr u32 crowd_rounds = 10;
#else
constexpr u32 crowd_rounds = 60;
#endif

/// Many groups, each of which reads many lines: whoever asked for a fill is served by it, however few frames there are.
void crowd(cache_fixture& fixture, u32 groups, u32 rounds) {
  const u64 seed = test_seed();
  line_cache_view const& view = fixture.cache().view();
  check_report report;
  run_threads(groups, [&](u32 i) {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 line = random_word(seed, i, round) % 128;
      u64 word = 0;
      const status outcome = read_line(lone_thread(), view, 0, true, line_id{line}, view.directory.find(line_id{line}),
                                       [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
      if (!PENSTOCK_CHECK_EQ(report, status{}, outcome)) return;
      PENSTOCK_CHECK_EQ(report, stamp(line * 64), word);
    }
  });
  const std::string where = std::to_string(groups) + " groups, seed " + std::to_string(seed);
  expect_clean(report, where);
  EXPECT_LE(fixture.cache().stats(0).misses, u64{groups} * rounds) << where << ": some fill was lost to others";
}

TEST_P(cache_limits_test, one_frame_serves_many_groups) {
  make({.frames = 1, .timeout_ns = 5 * one_second_ns});
  crowd(*fixture_, 16, crowd_rounds);
  expect_at_rest();
}

TEST_P(cache_limits_test, sixty_four_groups_share_eight_frames) {
  make({.frames = 8, .timeout_ns = 5 * one_second_ns});
  crowd(*fixture_, 64, crowd_rounds);
  expect_at_rest();
}

// A prefetch by a group that then exits: whoever waits for the line finds the command, whichever queue it is on.
TEST_P(cache_limits_test, a_fill_on_a_queue_that_nobody_serves_is_found) {
  constexpr u32 queues = 7;
  for (const bool bounce : {false, true}) {
    make({.frames = 64, .queues = queues, .bounce = bounce, .timeout_ns = 5 * one_second_ns});
    controller_.hold_all();
    std::set<u32> used;
    for (u64 line = 0; line < 2 * queues; ++line) {
      run_threads(1, [&](u32) { words_.prefetch(line * line_words); });
      ASSERT_EQ(line_state::filling, state_of(line));
      used.insert(view().record_of(find(line).entry, entry_at(line)).load_command() >> 16);
    }
    EXPECT_EQ(queues, used.size()) << "threads that follow each other use queues in turn";
    controller_.serve_all();
    for (u64 line = 0; line < 2 * queues; ++line) ASSERT_EQ(status{}, read(line)) << "line " << line;
    EXPECT_EQ(0u, cache().stats(0).misses);
    expect_at_rest();
  }
}

// A ring that stays full: the claim of a line that finds no place in it is over, as that of one whose command is lost.
TEST_P(cache_limits_test, a_claim_whose_command_finds_no_place_has_failed) {
  make({.frames = 64, .queues = 1, .depth = 4, .timeout_ns = 20 * one_millisecond_ns});
  controller_.hold_all();
  check_report report;
  run_threads(8, [&](u32 line) { PENSTOCK_CHECK(report, !read(line).ok()); });
  expect_clean(report);
  for (u64 line = 0; line < 8; ++line) EXPECT_EQ(line_state::failed, state_of(line)) << "line " << line;
}

TEST_P(cache_limits_test, a_dead_controller_keeps_nobody_waiting) {
  for (const bool bounce : {false, true}) {
    make({.frames = 16, .queues = 2, .depth = 4, .bounce = bounce, .timeout_ns = 20 * one_millisecond_ns});
    EXPECT_EQ(status{}, read(0));
    controller_.hold_all();
    const u64 begun = now_ns();
    check_report report;
    run_threads(8, [&](u32 i) {
      for (u64 round = 0; round < 4; ++round) {
        const u64 line = 1 + (i + 3 * round) % 12;
        const status outcome = round % 2 == 0 ? read(line) : pin_and_release(line);
        PENSTOCK_CHECK_EQ(report, status_domain::penstock, outcome.domain);
        PENSTOCK_CHECK_EQ(report, 0, words_[line * line_words]);
      }
    });
    expect_clean(report);
    EXPECT_LT(now_ns() - begun, far_off_ns);
    EXPECT_NE("", fault_sentence());
    EXPECT_EQ(status{}, read(0)) << "what is in a frame can still be read";
    controller_.serve_all();
  }
}

TEST_P(cache_limits_test, a_launch_that_could_pin_too_much_is_refused) {
  make({.frames = 70});
  EXPECT_NO_THROW(cache().check_pins(32, 1));
  EXPECT_NO_THROW(cache().check_pins(1, 32));
  EXPECT_NO_THROW(cache().check_pins(1000, 0));
  EXPECT_THROW(cache().check_pins(1ull << 40, 1ull << 40), error);
  try {
    cache().check_pins(12, 3);
    ADD_FAILURE() << "accepted";
  } catch (error const& refused) {
    EXPECT_EQ(error_kind::bad_input, refused.kind());
    EXPECT_EQ(
        "create a cache: 70 lines of 512 bytes, but 12 groups that may pin 3 each need twice that: ask for a cache of at least "
        "36864 bytes",
        std::string(refused.what()));
  }
}

}  // namespace
}  // namespace penstock::test
