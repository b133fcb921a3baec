// Queues that are taken back when their controller's life is ending, or over, and what is asked of it with little time.
#include "driver_bed.hpp"

#include <thread>

namespace penstock::test_support {
namespace {

TEST_F(driver_test, a_queue_that_is_taken_back_while_its_life_ends_costs_the_next_one_nothing) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  std::thread taker;
  function_->on_disable = [&] {
    taker = std::thread([&] { queue.detach(); });
    for (const u64 start = now_ns(); now_ns() - start < 100 * one_millisecond_ns;) std::this_thread::yield();
  };
  drive_->reset();
  taker.join();
  expect_it_serves();
  EXPECT_EQ(drive_->counts().resets, 1u) << "the queue went with its life: there was nothing to delete";
}

TEST_F(driver_test, haste_is_for_the_queue_that_was_in_trouble_and_no_later_one) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  drive_->reset();
  drive_->detach_soon(1, 1);
  drive_->attach(queue.rings());
  function_->plan(driver_step::delete_submission_queue, trouble::drop, 1);
  const u64 start = now_ns();
  queue.detach();
  EXPECT_GE(now_ns() - start, quick.admin_timeout_ns / 2);
}

TEST_F(driver_test, an_abort_that_has_no_time_is_not_begun) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  EXPECT_FALSE(drive_->abort(1, 0, least_abort_ns - one_millisecond_ns));
  EXPECT_EQ(drive_->counts().aborts, 0u);
  drive_->abort(1, 0, one_second_ns);
  EXPECT_EQ(drive_->counts().aborts, 1u);
  EXPECT_FALSE(drive_->failed());
}

}  // namespace
}  // namespace penstock::test_support
