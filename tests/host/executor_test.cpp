// What an executor may take of the machine.
#include "penstock/controller/model_controller.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <sys/resource.h>

namespace penstock::test {
namespace {

TEST(executor, limits_bound_the_threads_of_the_cpu) {
  const u32 all = open_executor("cpu")->units();
  EXPECT_EQ(open_executor("cpu", executor_limits{})->units(), all);
  EXPECT_EQ(open_executor("cpu", executor_limits{.units = 100'000})->units(), all);
  const auto on = open_executor("cpu", executor_limits{.units = 1});
  EXPECT_EQ(on->units(), 1u);
  EXPECT_EQ(on->device(), "1 CPU thread");
}

TEST(executor, a_bounded_one_runs_on_so_many_threads_whatever_the_grid) {
  const auto on = open_executor("cpu", executor_limits{.units = 1});
  std::mutex mutex;
  std::set<std::thread::id> seen;
  on->run(10'000, 1, [&](u64, u64) {
    const std::lock_guard guard(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 1u);
}

// A run does not wait for a worker that has not begun, so one that wakes up late must find no run.
TEST(executor, a_run_is_over_for_workers_that_wake_up_late) {
  const auto on = open_executor("cpu", 4);
  std::atomic<u64> done = 0;
  for (u64 k = 1; k <= 20'000; ++k) {
    auto open = std::make_unique<std::atomic<bool>>(true);
    const u64 items = k % 7;
    on->run(items, 1, [&, mine = open.get()](u64 first, u64 last) {
      if (!mine->load()) std::abort();
      done.fetch_add(last - first);
    });
    ASSERT_EQ(done.exchange(0), items);
    open->store(false);
  }
}

TEST(executor, each_piece_is_done_once_while_others_run) {
  const auto on = open_executor("cpu", 3);
  std::atomic<u64> done = 0;
  std::vector<std::thread> callers;
  for (u64 c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (u64 k = 0; k < 500; ++k) on->run(100, 3, [&](u64 first, u64 last) { done.fetch_add(last - first); });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(done.load(), 3u * 500 * 100);
}

// A yield beside other processes costs a time slice. getrusage counts a sleep as a voluntary switch, a yield only where another
// thread takes the core.
TEST(backoff, spins_first_and_then_sleeps) {
  const auto switches = [] {
    rusage used = {};
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
  };
  backoff wait(one_second_ns * 60);
  const auto before = switches();
  for (int k = 0; k < 4; ++k) wait.pause();
  EXPECT_EQ(switches(), before);
  for (int k = 0; k < 100; ++k) wait.pause();
  EXPECT_GE(switches(), before + 90);
}

TEST(executor, limits_change_nothing_about_names) {
  EXPECT_THROW(open_executor("gpu", executor_limits{.units = 8}), error);
  for (char const* name : {"cuda:", "cuda:-1", "cuda:x", "cuda:1 ", "cuda:12345", "cpu:0"}) {
    EXPECT_THROW(open_executor(name, 1), error) << name;
  }
  if (cuda_usable()) GTEST_SKIP() << "there is a GPU: tests/device/executor_test.cu";
  try {
    open_executor("cuda", executor_limits{.units = 8});
    FAIL();
  } catch (error const& problem) {
    EXPECT_EQ(problem.kind(), error_kind::bad_input);
  }
}

// The option is taken everywhere, so that one program has it for both executors.
TEST(executor, a_cpu_keeps_no_directory_in_l2) {
  std::vector<std::byte> media(1 << 20);
  model_controller drive({});
  const u32 space = drive.add_namespace(media);
  const auto on = open_executor("cpu", 1);
  EXPECT_EQ(on->keep_in_l2(media.data(), media.size()), 0u);
  cache_options options;
  options.bytes = 1 << 16;
  options.directory_in_l2 = true;
  line_cache cache(*on, {{"media", media.size(), {volume_layout::single, {{&drive, space}}}}}, options);
  EXPECT_GT(cache.directory_bytes(), 0u);
  EXPECT_EQ(cache.directory_bytes_in_l2(), 0u);
}

}  // namespace
}  // namespace penstock::test
