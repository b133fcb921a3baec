// The thread that runs a launch's blocks: what it is given it does once, asleep or awake.
#include "libs/kernels/launch_thread.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace penstock::kernels {
namespace {

void pass(u64 ns) {
  for (const u64 until_ns = now_ns() + ns; now_ns() < until_ns;) {}
}

TEST(launch_thread, does_each_work_once_however_long_it_lasts_and_its_owner_is_away) {
  launch_thread* const beside = launch_thread::free_one();
  ASSERT_NE(beside, nullptr);
  u64 done = 0;
  for (u64 k = 0; k < 200; ++k) {
    beside->start([&done, k] {
      if (k % 3 == 0) pass(2 * k * one_microsecond_ns);
      ++done;
    });
    while (!beside->wait_for(std::chrono::milliseconds(50))) {}
    EXPECT_EQ(beside->finish(), nullptr);
    ASSERT_EQ(done, k + 1);
    if (k % 2 == 0) pass(10 * k * one_microsecond_ns);  // until it sleeps, in the end
  }
}

TEST(launch_thread, hands_on_what_its_work_throws) {
  launch_thread* const beside = launch_thread::free_one();
  ASSERT_NE(beside, nullptr);
  beside->start([] { throw std::runtime_error("no"); });
  EXPECT_THROW(std::rethrow_exception(beside->finish()), std::runtime_error);
  beside->start([] {});
  EXPECT_EQ(beside->finish(), nullptr) << "of the last work";
}

TEST(launch_thread, is_the_main_threads_while_it_is_free) {
  launch_thread* const beside = launch_thread::free_one();
  launch_thread* others = beside;
  std::thread([&] { others = launch_thread::free_one(); }).join();
  EXPECT_EQ(others, nullptr);
  std::atomic<bool> go = false;
  beside->start([&] { go.wait(false); });
  EXPECT_EQ(launch_thread::free_one(), nullptr) << "a launch below a launch";
  EXPECT_FALSE(beside->wait_for(std::chrono::milliseconds(1)));
  go = true;
  go.notify_one();
  EXPECT_EQ(beside->finish(), nullptr);
  EXPECT_EQ(launch_thread::free_one(), beside);
}

}  // namespace
}  // namespace penstock::kernels
