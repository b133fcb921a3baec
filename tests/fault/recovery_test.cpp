// A controller dies under a cache or a block device, and comes back: recover() answers whoever waits, and all is as before.
#include "penstock/runtime/block_device.hpp"
#include "support/cache_fixture.hpp"
#include "support/expect_clean.hpp"
#include "support/run_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace penstock::test {
namespace {

#if defined(PENSTOCK_TSAN)
constexpr u64 timeout = 10 * one_second_ns;
#else
constexpr u64 timeout = 2 * one_second_ns;
#endif
constexpr u32 most_in_flight = 1000;
constexpr u64 line_words = 64;
constexpr status resetting = make_status(failure::resetting);

struct recovery_shape {
  directory_kind directory;
  bool bounce;
  u32 queues;
  u32 controller_threads;
};

class recovery_test : public testing::TestWithParam<recovery_shape> {
 protected:
  static constexpr u64 frames = 4998;  // whole sets

  void make(u64 timeout_ns) {
    model_options options;
    options.threads = GetParam().controller_threads;
    model_ = std::make_unique<model_controller>(options);
    model_->add_namespace(media_.bytes());
    fixture_ = std::make_unique<cache_fixture>(*on_, *model_, 1,
                                               cache_shape{.frames = frames,
                                                           .media_bytes = media_bytes,
                                                           .queues = GetParam().queues,
                                                           .depth = 2048,
                                                           .bounce = GetParam().bounce,
                                                           .timeout_ns = timeout_ns,
                                                           .directory = GetParam().directory,
                                                           .retry = {.attempts = 1, .fails_after = 0}});
  }
  line_cache& cache() { return fixture_->cache(); }
  line_cache_view const& view() { return cache().view(); }

  status read(u64 line) {
    u64 word = 0;
    const status outcome = read_line(lone_thread(), view(), 0, true, line_id{line}, view().directory.find(line_id{line}),
                                     [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
    EXPECT_EQ(outcome.ok() ? stamp(line * line_words) : 0, word) << "line " << line;
    return outcome;
  }
  void ask_ahead(u64 first, u64 last) {
    for (u64 line = first; line < last; ++line) {
      prefetch_line(lone_thread(), view(), 0, true, line_id{line}, fill_purpose::asked);
    }
  }
  u64 lines_in(line_state state, u64 last) {
    u64 n = 0;
    for (u64 line = 0; line < last; ++line) n += view().directory.find(line_id{line}).state() == state;
    return n;
  }
  queue_counts sums() {
    queue_counts all;
    for (queue_counts const& q : cache().queues()) {
      EXPECT_EQ(q.commands, q.completions - q.strays + q.expired + q.failed + q.reset);
      EXPECT_EQ(q.failure, status{});
      all.commands += q.commands, all.expired += q.expired, all.failed += q.failed, all.reset += q.reset;
    }
    return all;
  }
  void expect_all_lines_right() {
    for (u64 line = 0; line < media_bytes / 512; ++line) ASSERT_EQ(status{}, read(line));
    check_report report;
    fixture_->check_at_rest(report);
    expect_clean(report);
  }

  static constexpr u64 media_bytes = 1 << 20;
  stamped_media media_{media_bytes};
  std::unique_ptr<executor> on_ = open_executor("cpu", 1);
  std::unique_ptr<model_controller> model_;
  std::unique_ptr<cache_fixture> fixture_;
};

INSTANTIATE_TEST_SUITE_P(shapes, recovery_test,
                         testing::Values(recovery_shape{directory_kind::direct, false, 1, 0},
                                         recovery_shape{directory_kind::direct, true, 4, 0},
                                         recovery_shape{directory_kind::set_associative, false, 4, 1},
                                         recovery_shape{directory_kind::set_associative, true, 1, 1}),
                         [](auto const& shape) {
                           return name_of(shape.param.directory) + (shape.param.bounce ? "_bounce_" : "_straight_") +
                                  std::to_string(shape.param.queues) + "_queues_" +
                                  std::to_string(shape.param.controller_threads) + "_threads";
                         });

// The figure: 1000 commands in flight at a dead controller, some of them waited for; all are answered within one deadline.
TEST_P(recovery_test, a_thousand_commands_in_flight_are_answered_within_a_deadline) {
  constexpr u32 waiters = 4;
  make(timeout);
  model_->set_dead(true);
  const u64 begin = now_ns();
  ask_ahead(0, most_in_flight);
  ASSERT_EQ(lines_in(line_state::filling, most_in_flight), most_in_flight);
  std::vector<status> told(waiters);
  recovery done;
  u64 recovered = 0;
  run_threads(waiters + 1, [&](u32 thread) {
    if (thread < waiters) {
      told[thread] = read(thread * 100);
      return;
    }
    // Each of them holds a pin on its line.
    const auto waits = [&](u64 line) { return entry::pins(view().directory.find(line_id{line}).word) != 0; };
    for (u64 w = 0; w < waiters; ++w) {
      while (!waits(w * 100) && now_ns() < begin + timeout) std::this_thread::yield();
    }
    done = cache().recover(recover_scope::all);
    recovered = now_ns();
  });
  EXPECT_LT(recovered - begin, timeout);
  EXPECT_LT(now_ns() - begin, timeout);
  EXPECT_EQ(done.queues, GetParam().queues);
  EXPECT_EQ(done.commands, most_in_flight);
  EXPECT_EQ(told, std::vector<status>(waiters, resetting));
  EXPECT_EQ(lines_in(line_state::failed, most_in_flight), most_in_flight);
  const queue_counts after = sums();
  EXPECT_EQ(after.commands, most_in_flight);
  EXPECT_EQ(after.reset, most_in_flight);
  EXPECT_EQ(after.expired + after.failed, 0u);

  // It lives, and every frame is of use.
  model_->set_dead(false);
  EXPECT_EQ(cache().recover().queues, 0u);
  expect_all_lines_right();
  sums();
}

// Nobody recovers until the deadlines have told, and the controller answers again only after the second recovery.
TEST_P(recovery_test, what_expired_comes_back) {
  // A thread of the controller's may sleep for longer than a test wants to wait; who polls looks once more before it gives up.
  make((GetParam().controller_threads == 0 ? 10 : 500) * one_millisecond_ns);
  model_->set_dead(true);
  ask_ahead(0, 200);
  EXPECT_FALSE(read(0).ok());
  for (u32 lives = 0; lives < 2; ++lives) {
    for (backoff patience(10 * one_second_ns); lines_in(line_state::filling, 200) != 0 && patience.pause();) {
      for (u32 q = 0; q < view().queues_count; ++q) view().queues[q].progress(lone_thread());
    }
    const recovery done = cache().recover();
    EXPECT_GE(done.queues, 1u);
    EXPECT_EQ(done.commands, 0u);
    for (u64 line = 0; line < 200; ++line) ASSERT_EQ(entry::pins(view().directory.find(line_id{line}).word), 0u) << line;
    EXPECT_EQ(cache().recover().queues, 0u);
    ASSERT_TRUE(lives != 0 || !read(0).ok());
  }
  model_->set_dead(false);
  expect_all_lines_right();
  const queue_counts after = sums();
  EXPECT_GE(after.expired + after.failed, 200u);  // the spare bounce buffers are fewer
}

TEST(recovery, a_block_device_comes_back) {
  stamped_media media(1 << 20);
  model_controller model({});
  model.add_namespace(media.bytes());
  const auto on = open_executor("cpu", 1);
  block_device_options options;
  options.queues = 2;
  options.queue_depth = 1024;
  options.timeout_ns = timeout;
  options.transfer_bytes = 512;
  block_device device(*on, model, 1, options);
  buffer<block_request> requests(on->memory(), memory_kind::local, most_in_flight);
  buffer<u64> data(on->memory(), memory_kind::local, most_in_flight * line_words);
  const auto address = [&](u32 k) { return reinterpret_cast<u64>(data.data() + k * line_words); };
  model.set_dead(true);
  const u64 begin = now_ns();
  for (u32 k = 0; k < most_in_flight; ++k) {
    submit_blocks(lone_thread(), device.view(), nvme::opcode::read, true, requests.data()[k], lba{k}, 1, address(k));
  }
  EXPECT_EQ(device.recover().queues, 0u);  // nobody knows yet
  const recovery done = device.recover(recover_scope::all);
  EXPECT_EQ(done.queues, 2u);
  EXPECT_EQ(done.commands, most_in_flight);
  for (u32 k = 0; k < most_in_flight; ++k) {
    ASSERT_EQ(wait_blocks(lone_thread(), device.view(), true, requests.data()[k]), resetting);
  }
  EXPECT_LT(now_ns() - begin, timeout);
  model.set_dead(false);
  for (u32 k = 0; k < most_in_flight; ++k) {
    ASSERT_EQ(read_blocks(lone_thread(), device.view(), true, requests.data()[k], lba{k}, 1, address(k)), status{});
    ASSERT_EQ(data.data()[k * line_words], stamp(k * line_words));
  }
}

}  // namespace
}  // namespace penstock::test
