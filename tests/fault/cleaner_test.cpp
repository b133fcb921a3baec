// The cleaner: which lines go out, in how many commands, when, and how fast.
#include "fault/writable_cache.hpp"
#include "penstock/runtime/queue_service.hpp"
#include "support/emulated_warp.hpp"

#include <algorithm>
#include <set>

namespace penstock::test {
namespace {

class cleaner_test : public writable_cache {};
PENSTOCK_UNDER_BOTH_DIRECTORIES(cleaner_test);

TEST_P(cleaner_test, neighbours_go_out_in_one_command) {
  make_writable({.frames = 140, .queues = 1});
  for (u64 line = 0; line < 64; ++line) store((line * 37 % 64) * line_words);
  EXPECT_EQ("", flush_sentence());
  const cache_stats stats = cache().stats(0);
  EXPECT_EQ(1u, stats.write_commands);
  EXPECT_EQ(64u, stats.write_backs);
  EXPECT_EQ(64u * 512, stats.bytes_written);
  EXPECT_EQ(64u * 8, stats.bytes_changed);
  EXPECT_EQ(64.0, stats.write_amplification());
  expect_at_rest();
}

TEST_P(cleaner_test, gaps_are_not_written) {
  make_writable({.frames = 70});
  const std::set<u64> lines{3, 4, 5, 9, 10, 30};
  for (const u64 line : lines) store(line * line_words);
  for (u64 line = 0; line < 32; ++line) EXPECT_EQ(status{}, lines.count(line) != 0 ? status{} : read(line));
  EXPECT_EQ("", flush_sentence());
  EXPECT_EQ(3u, cache().stats(0).write_commands);
  EXPECT_EQ(6u, cache().stats(0).write_backs);
}

TEST_P(cleaner_test, a_flush_of_a_range_leaves_the_rest) {
  make_writable({.frames = 70});
  for (u64 line = 0; line < 30; line += 3) store(line * line_words);
  cache().flush(0, 6 * 512 + 7, 3 * 512);  // lines 6 to 9
  for (u64 line = 0; line < 30; line += 3) EXPECT_EQ(line != 6 && line != 9, dirty(line)) << line;
  EXPECT_EQ(value(9 * line_words), media(9 * line_words));
  EXPECT_EQ(stamp(12 * line_words), media(12 * line_words));
}

TEST_P(cleaner_test, more_dirty_lines_than_may_be_are_written_by_who_makes_them) {
  make_writable({.frames = 112, .write_back = {.most_dirty = 0.125}});
  for (u64 line = 0; line < 100; ++line) {
    store(line * line_words);
    EXPECT_LE(dirty_lines(), 14u);
  }
  EXPECT_LT(0u, cache().stats(0).write_backs);
  EXPECT_EQ("", flush_sentence());
  for (u64 line = 0; line < 100; ++line) EXPECT_EQ(value(line * line_words), media(line * line_words));
}

// A run for each line that became dirty, not one for the group: else a warp's lines outgrow what may be dirty.
TEST_P(cleaner_test, a_warp_that_makes_many_lines_dirty_writes_as_many) {
  make_writable({.frames = 112, .write_back = {.most_dirty = 0.125, .command_bytes = 512}});
  const u64 most = view().writes.most_dirty;
  for (u64 turn = 0; turn < 8; ++turn) {
    run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
      const u64 word = (turn * 32 + g.rank()) % 128 * line_words + turn;
      out_.write(g, true, word, value(word));
    });
    EXPECT_LE(dirty_lines(), most + 1) << "turn " << turn;
  }
  EXPECT_EQ("", flush_sentence());
}

// A run for each lane, of lines that lie apart: as many as are asked for, and no more than there are slots.
TEST_P(cleaner_test, a_warp_sends_a_run_for_each_of_its_lanes_at_once) {
  for (const u32 slots : {64u, 5u}) {
    make_writable({.frames = 112, .depth = 64, .write_back = {.most_dirty = 1, .command_bytes = 512, .commands = slots}});
    for (u64 line = 0; line < 40; ++line) {
      for (u64 word = 0; word < line_words; word += 7) store(2 * line * line_words + word);
    }
    controller_.answer_writes([](u64) { return verdict{0, true}; });
    const u32 sent = std::min(slots, 32u);
    check_report report;
    run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
      const cleaned some = clean_next(g, view(), 32);
      PENSTOCK_CHECK(report, some.step == clean_step::sent);
      PENSTOCK_CHECK_EQ(report, sent, some.runs);
      if (slots == 5) PENSTOCK_CHECK(report, clean_next(g, view(), 32).step == clean_step::busy);
    });
    expect_clean(report);
    EXPECT_EQ(40 - sent, dirty_lines());
    EXPECT_EQ(sent, cache().stats(0).write_backs);
    EXPECT_EQ(sent, cache().stats(0).write_commands);
    controller_.answer_writes([](u64) { return verdict{}; });
    EXPECT_EQ("", flush_sentence());
    for (u64 word = 0; word < 80 * line_words; ++word) {
      const bool stored = word / line_words % 2 == 0 && word % line_words % 7 == 0;
      ASSERT_EQ(stored ? value(word) : stamp(word), media(word)) << "word " << word;
    }
    expect_at_rest();
  }
}

TEST_P(cleaner_test, a_lane_whose_line_is_clean_sends_nothing) {
  make_writable({.frames = 112, .depth = 64, .write_back = {.most_dirty = 1, .command_bytes = 512, .commands = 64}});
  for (u64 line = 0; line < 32; line += 2) store(line * line_words);
  check_report report;
  run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
    const cleaned some = clean_lines(g, view(), true, 0, line_id{g.rank()}, clean_which::unpinned);
    PENSTOCK_CHECK_EQ(report, 16u, some.runs);
    PENSTOCK_CHECK_EQ(report, g.rank() % 2 == 0, some.mine);
  });
  expect_clean(report);
  EXPECT_EQ("", flush_sentence());
  EXPECT_EQ(16u, cache().stats(0).write_backs);
  for (u64 line = 0; line < 32; line += 2) EXPECT_EQ(value(line * line_words), media(line * line_words));
  expect_at_rest();
}

TEST_P(cleaner_test, lanes_whose_lines_are_neighbours_send_one_run) {
  make_writable({.frames = 112, .write_back = {.most_dirty = 1, .command_bytes = 16384, .commands = 64}});
  ASSERT_EQ(32u, view().writes.run_lines);
  for (u64 word = 0; word < 32 * line_words; ++word) store(word);
  check_report report;
  run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
    const cleaned some = clean_lines(g, view(), true, 0, line_id{g.rank()}, clean_which::unpinned);
    PENSTOCK_CHECK_EQ(report, 1u, some.runs);
    PENSTOCK_CHECK_EQ(report, is_leader(g), some.mine);
  });
  expect_clean(report);
  EXPECT_EQ(0u, dirty_lines());
  EXPECT_EQ(1u, cache().stats(0).write_commands);
  EXPECT_EQ("", flush_sentence());
  for (u64 word = 0; word < 32 * line_words; ++word) ASSERT_EQ(value(word), media(word));
  expect_at_rest();
}

// There are more slots than a look goes over: each look goes on behind the last one.
TEST_P(cleaner_test, every_one_of_many_slots_is_used_and_retired) {
  const u32 slots = 3 * most_slots_looked_at;
  make_writable({.frames = 112,
                 .timeout_ns = 2 * one_second_ns,
                 .write_back = {.most_dirty = 1, .command_bytes = 512, .commands = slots}});
  for (u64 turn = 0; turn < 5; ++turn) {
    for (u64 line = 0; line < 100; ++line) store(line * line_words + turn);
    for (u64 line = 0; line < 100; ++line) ASSERT_EQ(clean_step::sent, clean(line)) << "line " << line;
    EXPECT_EQ("", flush_sentence());
    for (u64 line = 0; line < 100; ++line) ASSERT_EQ(value(line * line_words + turn), media(line * line_words + turn));
  }
  expect_at_rest();
}

TEST_P(cleaner_test, the_reserve_of_clean_frames_is_known_at_its_lowest) {
  make_writable({.frames = 112, .write_back = {.most_dirty = 1, .command_bytes = 512}});
  EXPECT_EQ(112u, cache().least_clean_frames());
  for (u64 line = 0; line < 20; ++line) store(line * line_words);
  EXPECT_EQ(92u, cache().least_clean_frames());
  store(3 * line_words + 1);
  EXPECT_EQ(92u, cache().least_clean_frames()) << "it was dirty already";
  controller_.answer_writes([](u64) { return verdict{0, true}; });
  for (u64 line = 0; line < 5; ++line) ASSERT_EQ(clean_step::sent, clean(line));
  EXPECT_EQ(15u, dirty_lines());
  store(20 * line_words);
  EXPECT_EQ(91u, cache().least_clean_frames()) << "what is being written is not clean";
  store(0);
  EXPECT_EQ(90u, cache().least_clean_frames()) << "dirty and being written: twice";
  controller_.answer_writes([](u64) { return verdict{}; });
  EXPECT_EQ("", flush_sentence());
  store(0);
  EXPECT_EQ(90u, cache().least_clean_frames()) << "the lowest stays";
  EXPECT_EQ("", flush_sentence());
  expect_at_rest();
}

TEST_P(cleaner_test, time_for_making_room_is_counted_where_it_is_taken) {
  make_writable({.frames = 7, .write_back = {.most_dirty = 1}});
  u64 line = 0;
  for (; dirty_lines() < view().frames; ++line) store(line * line_words);
  cache_stats before = cache().stats(0);
  EXPECT_EQ(0u, before.frame_waits + before.frame_wait_ns + before.clean_ns);
  EXPECT_EQ(status{}, read(line));
  cache_stats now = cache().stats(0);
  EXPECT_EQ(1u, now.frame_waits) << "all were dirty, and one had to be written first";
  EXPECT_LT(0u, now.frame_wait_ns);
  EXPECT_LT(before.search_ns, now.search_ns);
  EXPECT_EQ(now.search_ns + now.frame_wait_ns, now.evicting_ns());
  EXPECT_EQ(stamp(line * line_words), words_[line * line_words]);
  EXPECT_EQ(now.evicting_ns(), cache().stats(0).evicting_ns()) << "a hit looks at no clock";
  EXPECT_EQ("", flush_sentence());

  make_writable({.frames = 28, .write_back = {.most_dirty = 0.25}});
  for (line = 0; line < 8; ++line) store(line * line_words);
  now = cache().stats(0);
  EXPECT_LT(0u, now.clean_ns) << "who makes a line too many dirty writes others";
  EXPECT_EQ(0u, now.frame_waits);
}

// Down to its mark; and when it ends so have its writes.
TEST_P(cleaner_test, cleaning_beside_other_work_leaves_as_many_dirty_as_its_mark) {
  make_writable({.frames = 112, .depth = 64, .write_back = {.most_dirty = 0.5, .command_bytes = 512}});
  ASSERT_EQ(56u, view().writes.most_dirty);
  ASSERT_EQ(49u, view().writes.clean_to);
  for (u64 turn = 0; turn < 3; ++turn) {
    for (u64 line = 0; line < 56; ++line) store(2 * line * line_words + turn);
    const u64 before = cache().stats(0).write_backs;
    run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) { clean_beside(g, view(), 1, 20 * one_second_ns); });
    EXPECT_FALSE(view().writes.any_written()) << "what was sent is over";
    EXPECT_LE(dirty_lines(), 49u);
    EXPECT_LE(7u, cache().stats(0).write_backs - before);
    EXPECT_GE(32u, cache().stats(0).write_backs - before) << "no more than a warp sends at once";
  }
  u64 before = cache().stats(0).write_backs;
  clean_beside(lone_thread(), view(), 1, 20 * one_second_ns);
  EXPECT_EQ(before, cache().stats(0).write_backs) << "there are no more than may be left";
  for (u64 line = 0; line < 56; ++line) store(2 * line * line_words + 3);
  const u64 above = view().writes.dirty_above(49);
  ASSERT_LT(3u, above);
  before = cache().stats(0).write_backs;
  clean_beside(lone_thread(), view(), 3, 20 * one_second_ns);
  EXPECT_EQ(before + (above + 2) / 3, cache().stats(0).write_backs) << "a third is each one's share";
  for (u64 line = 0; line < 56; ++line) store(2 * line * line_words + 4);
  EXPECT_LT(49u, dirty_lines());
  cache().clean_beside(on_->stream());
  EXPECT_LE(dirty_lines(), 49u);
  EXPECT_EQ("", flush_sentence());
  for (u64 line = 0; line < 56; ++line) EXPECT_EQ(value(2 * line * line_words), media(2 * line * line_words));
  expect_at_rest();
}

TEST_P(cleaner_test, cleaning_beside_other_work_ends_in_time) {
  make_writable({.frames = 112, .timeout_ns = 2 * one_second_ns, .write_back = {.most_dirty = 0.5}});
  for (u64 line = 0; line < 56; ++line) store(2 * line * line_words);
  controller_.answer_writes([](u64) { return verdict{0, true}; });
  const u64 begun = now_ns();
  run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) { clean_beside(g, view(), 1, 20 * one_millisecond_ns); });
  EXPECT_LT(now_ns() - begun, one_second_ns);
  controller_.answer_writes([](u64) { return verdict{}; });
  EXPECT_EQ("", flush_sentence());
}

TEST_P(cleaner_test, a_service_cleans_in_the_background_down_to_its_mark) {
  make_writable({.frames = 112, .write_back = {.most_dirty = 1, .clean_from = 0.25}});
  for (u64 line = 0; line < 90; ++line) store(line * line_words);
  EXPECT_EQ(90u, dirty_lines());
  queue_service service(*on_, cache(), {.units = 1});
  service.start();
  EXPECT_TRUE(wait_until([&] { return dirty_lines() <= 28; }));
  service.stop();
  EXPECT_EQ("", flush_sentence());
}

TEST_P(cleaner_test, a_service_keeps_to_its_rate) {
  // Runs of one line, so 50 lines take at least 49 times 2 ms.
  make_writable({.frames = 112,
                 .write_back = {.most_dirty = 1, .clean_from = 0.01, .bytes_per_second = 512 * 500, .command_bytes = 512}});
  for (u64 line = 0; line < 51; ++line) store(line * line_words);
  queue_service service(*on_, cache(), {.units = 1});
  const u64 begun = now_ns();
  service.start();
  EXPECT_TRUE(wait_until([&] { return dirty_lines() <= 1; }));
  EXPECT_GE(now_ns() - begun, 49 * 2 * one_millisecond_ns);
  service.stop();
}

}  // namespace
}  // namespace penstock::test
