#include "device/async_read_test_body.hpp"

#include "penstock/coalesce/bring_lines.hpp"
#include "support/faulty_cache.hpp"

namespace penstock::test {
namespace {

constexpr everywhere extent{.lone_threads = 3, .warps = 1, .partitions = 1};
#if defined(PENSTOCK_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr u32 rounds = 1;
#else
constexpr u32 rounds = 4;
#endif

using async_read_test = faulty_cache;
PENSTOCK_UNDER_BOTH_DIRECTORIES(async_read_test);

// From one frame that everyone fights for to frames for all; with a ring that is always full.
TEST_P(async_read_test, every_token_gives_its_element) {
  model_options options;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  model_controller model(options);
  model.add_namespace(media_.bytes());
  const cache_shape shapes[] = {
      {.frames = 1}, {.frames = 32, .queues = 1, .depth = 4}, {.frames = 64, .bounce = true}, {.frames = 200}};
  for (cache_shape const& shape : shapes) {
    on_fresh_cache<async_reads_body> body;
    body.on = on_.get();
    body.owner = &model;
    body.shape = with_directory(shape, GetParam());
    body.rounds = rounds;
    run_everywhere(body, extent);
  }
}

TEST_P(async_read_test, a_miss_sends_its_command_and_does_not_wait) {
  for (const bool bounce : {false, true}) {
    make({.frames = 64, .bounce = bounce});
    controller_.hold_all();
    auto first = words_.read_async(5 * line_words + 1);
    auto second = words_.read_async(6 * line_words + 2);
    auto same_line = words_.read_async(5 * line_words + 3);
    EXPECT_FALSE(first.here() || second.here() || same_line.here());
    EXPECT_EQ(line_state::filling, state_of(5));
    EXPECT_EQ(line_state::filling, state_of(6));
    EXPECT_EQ(0u, entry::pins(entry_at(5))) << "a token holds nothing";
    EXPECT_EQ(2u, cache().stats(0).fills);
    controller_.serve_all();
    EXPECT_EQ(stamp(5 * line_words + 3), same_line.wait());
    EXPECT_EQ(stamp(6 * line_words + 2), second.wait());
    EXPECT_EQ(stamp(5 * line_words + 1), first.wait());
    const cache_stats stats = cache().stats(0);
    EXPECT_EQ(2u, stats.fills) << "wait asks for nothing that was asked for";
    EXPECT_EQ(2u, stats.prefetches);
    expect_at_rest();
  }
}

TEST_P(async_read_test, a_hit_has_its_value_at_once) {
  make({.frames = 64});
  EXPECT_EQ(stamp(5 * line_words), words_[5 * line_words]);
  EXPECT_EQ(stamp(5 * line_words), words_[5 * line_words]) << "the second one refers to it";
  controller_.hold_all();
  auto token = words_.read_async(5 * line_words + 7);
  EXPECT_TRUE(token.here());
  EXPECT_EQ(stamp(5 * line_words + 7), token.wait());
  EXPECT_EQ(1u, cache().stats(0).fills);
  controller_.serve_all();
}

TEST_P(async_read_test, a_resident_array_has_its_value_at_once) {
  const array_view<u64> resident(reinterpret_cast<u64 const*>(media_.bytes().data()), 100);
  auto token = resident.read_async(9);
  EXPECT_TRUE(token.here());
  EXPECT_EQ(stamp(9), token.wait());
  resident.ask_span(lone_thread(), 0, 100);
}

// What was asked for stays until the clock has gone by it once, as a line does that was used.
TEST_P(async_read_test, a_line_that_was_asked_for_is_a_hit_when_it_has_come) {
  make({.frames = 64});
  auto token = words_.read_async(3 * line_words);
  ASSERT_TRUE(drive_until([&] { return state_of(3) == line_state::valid; }));
  hit_line at;
  EXPECT_TRUE(words_.reader().find(words_.address_of(3 * line_words), at));
  EXPECT_EQ(stamp(3 * line_words), token.wait());
  words_.prefetch(4 * line_words);
  ASSERT_TRUE(drive_until([&] { return state_of(4) == line_state::valid; }));
  EXPECT_FALSE(words_.reader().find(words_.address_of(4 * line_words), at)) << "a prefetch is of no such worth";
}

TEST_P(async_read_test, a_line_that_has_gone_is_asked_for_again) {
  make({.frames = 8});
  auto token = words_.read_async(3 * line_words + 4);
  for (u64 line = 4; line < 128; ++line) ASSERT_EQ(status{}, read(line));
  ASSERT_EQ(line_state::empty, state_of(3));
  const u64 before = cache().stats(0).fills;
  EXPECT_EQ(stamp(3 * line_words + 4), token.wait());
  EXPECT_EQ(before + 1, cache().stats(0).fills);
  expect_at_rest();
}

TEST_P(async_read_test, a_dropped_token_leaves_nothing_behind) {
  make({.frames = 8});
  for (u64 line = 0; line < 128; ++line) (void)words_.read_async(line * line_words);
  EXPECT_LT(0u, cache().stats(0).prefetches);
  expect_at_rest();
  for (u64 line = 0; line < 128; ++line) ASSERT_EQ(status{}, read(line)) << "every frame can still be had";
  expect_at_rest();
}

// Ahead of need no more than a quarter of the frames and half of the rings are in flight; the rest is asked for by `wait`.
TEST_P(async_read_test, no_more_than_its_share_is_in_flight_ahead_of_need) {
  make({.frames = 64, .queues = 2, .depth = 256});  // rings for all that the frames could take
  const u64 most = view().prefetch_limit;
  ASSERT_LT(0u, most);
  ASSERT_LE(most * std::min<u64>(view().prefetch_shards, on_->units()), view().frames / 4);
  controller_.hold_all();
  check_report report;
  run_threads(1, [&](u32) {
    std::vector<pending_read<u64>> tokens;
    for (u64 line = 0; line < 2 * most; ++line) tokens.push_back(words_.read_async(line * line_words));
    PENSTOCK_CHECK_EQ(report, most, cache().stats(0).fills);
    for (u64 line = 0; line < 2 * most; ++line) words_.prefetch(line * line_words);
    PENSTOCK_CHECK_EQ(report, most, cache().stats(0).fills);
    words_.ask_span(lone_thread(), 0, words_.size());
    PENSTOCK_CHECK_EQ(report, most, cache().stats(0).fills);
    controller_.serve_all();
    for (u64 line = 0; line < 2 * most; ++line) PENSTOCK_CHECK_EQ(report, stamp(line * line_words), tokens[line].wait());
  });
  expect_clean(report);
  for (u32 s = 0; s < view().prefetch_shards; ++s) EXPECT_EQ(0u, view().prefetches_in_flight[s]);
  // What is over makes room for more.
  words_.prefetch(100 * line_words);
  EXPECT_NE(line_state::empty, state_of(100));
  expect_at_rest();
}

// As long as what was brought in for the same batch: a line that lay there before is not given up for those that did not.
TEST_P(async_read_test, a_line_that_is_there_when_it_is_asked_for_stays_as_one_that_comes) {
  constexpr u64 asked = 3;
  make({.frames = 64});
  words_.prefetch(asked * line_words);
  ASSERT_TRUE(drive_until([&] { return state_of(asked) == line_state::valid; }));
  hit_line at;
  ASSERT_FALSE(words_.reader().find(words_.address_of(asked * line_words), at)) << "nobody has used it";
  const u64 until_ns = now_ns() + 20 * one_second_ns;
  for (const bring_step step : {bring_step::ask, bring_step::await}) {
    bring_lines(lone_thread(), view(), 0, true, line_id{asked}, step, until_ns);
  }
  EXPECT_TRUE(words_.reader().find(words_.address_of(asked * line_words), at));
  EXPECT_EQ(1u, cache().stats(0).fills);
}

// Beyond the share it waits, where a prefetch leaves lines out. (Of a lone thread's share, that is: each lane of an emulated
// warp has one of its own.)
TEST_P(async_read_test, lines_are_brought_in_however_few_may_be_in_flight) {
  constexpr u64 lines = 48;
  const auto bring = [&](auto const& g, bring_step step) {
    const u64 until_ns = now_ns() + 20 * one_second_ns;
    for (u64 first = 0; first < lines; first += size(g)) {
      const u64 line = first + index_in(g);
      bring_lines(g, view(), 0, line < lines, line_id{line}, step, until_ns);
    }
  };
  for (const bool bounce : {false, true}) {
    for (const bool alone : {false, true}) {
      make({.frames = 64, .queues = 1, .depth = 256, .bounce = bounce});
      ASSERT_LT(view().prefetch_limit, lines / 2);
      for (const bring_step step : {bring_step::ask, bring_step::await}) {
        if (alone) {
          run_threads(1, [&](u32) { bring(lone_thread(), step); });
        } else {
          run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) { bring(g, step); });
        }
      }
      EXPECT_EQ(lines, cache().stats(0).fills);
      EXPECT_EQ(lines, cache().stats(0).prefetches);
      for (u64 line = 0; line < lines; ++line) EXPECT_EQ(line_state::valid, state_of(line)) << "line " << line;
      bring(lone_thread(), bring_step::ask);
      EXPECT_EQ(lines, cache().stats(0).fills) << "what is there is not asked for";
      expect_at_rest();
    }
  }
}

TEST_P(async_read_test, lines_that_do_not_come_are_given_up_in_time) {
  make({.frames = 64, .queues = 1, .depth = 256});
  controller_.hold_all();
  const u64 begun = now_ns();
  run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
    for (const bring_step step : {bring_step::ask, bring_step::await}) {
      bring_lines(g, view(), 0, true, line_id{g.rank()}, step, begun + 10 * one_millisecond_ns);
    }
  });
  EXPECT_LT(now_ns() - begun, 5 * one_second_ns);
  controller_.serve_all();
}

TEST_P(async_read_test, wait_tells_what_a_read_would) {
  make({.frames = 16, .timeout_ns = 20 * one_millisecond_ns});
  controller_.fail_all(media_error.code);
  auto failed = words_.read_async(2 * line_words);
  EXPECT_EQ(0u, failed.wait());
  EXPECT_NE(std::string::npos, fault_sentence().find("at byte " + std::to_string(2 * 512)));
  controller_.hold_all();
  auto late = words_.read_async(3 * line_words);
  const u64 begun = now_ns();
  EXPECT_EQ(0u, late.wait());
  EXPECT_LT(now_ns() - begun, far_off_ns);
  EXPECT_NE("", fault_sentence());
  controller_.serve_all();
}

}  // namespace
}  // namespace penstock::test
