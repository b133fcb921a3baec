// Recovery on a drive, stage by stage: commands that are late are aborted; where that does not do, their queue is deleted;
// where that does not do, the controller is reset; and failing that the function. Whatever the controller answers, or not, each
// command has one result, within its time-out + CAP.TO + 1 s.
#include "fault/queue_fault_bed.hpp"
#include "support/modelled_function.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"

#include <thread>

namespace penstock::test_support {
namespace {

using namespace penstock::test;

constexpr u64 time_out = 300 * one_millisecond_ns;
constexpr u64 cap_to = 500 * one_millisecond_ns;
#if defined(PENSTOCK_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr u64 slack = 5 * one_second_ns;  // of a machine that does ten times the work
#else
constexpr u64 slack = 0;
#endif
constexpr u32 batch = 48;

enum class expected_end { by_aborts, by_deleting, by_reset, by_function_reset };

struct recovery_case {
  char const* name;
  trouble at_abort;
  trouble at_delete;
  bool never_stops;
  expected_end end;
};

class recovery_stages : public testing::TestWithParam<recovery_case> {
 protected:
  /// A quarter of the commands never end, half of the others take their time.
  static modelled_function_options slow() {
    modelled_function_options options;
    options.engine.threads = 1;
    options.engine.faults = {.seed = 5, .delay = 0.5, .delay_ns = time_out / 2, .late = 0.25, .late_ns = 3600 * one_second_ns};
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(
    every, recovery_stages,
    testing::Values(recovery_case{"aborts_end_them", trouble::none, trouble::none, false, expected_end::by_aborts},
                    recovery_case{"aborts_are_refused", trouble::refuse, trouble::none, false, expected_end::by_deleting},
                    recovery_case{"aborts_are_not_answered", trouble::drop, trouble::none, false, expected_end::by_reset},
                    recovery_case{"an_abort_fails_it", trouble::fatal, trouble::none, false, expected_end::by_reset},
                    recovery_case{"an_abort_is_answered_for_another", trouble::wrong_identifier, trouble::none, false,
                                  expected_end::by_reset},
                    recovery_case{"the_queue_is_not_deleted", trouble::refuse, trouble::drop, false, expected_end::by_reset},
                    recovery_case{"deleting_is_refused", trouble::refuse, trouble::refuse, false, expected_end::by_reset},
                    recovery_case{"nothing_but_the_function_s_reset", trouble::drop, trouble::drop, true,
                                  expected_end::by_function_reset}),
    [](auto const& test) { return std::string(test.param.name); });

/// Two batches of commands, and when each of them was submitted and had its result.
class timed_batches {
 public:
  explicit timed_batches(fault_bed& bed) : bed_(bed), watcher_([this] { watch(); }) {}
  ~timed_batches() {
    if (watcher_.joinable()) watcher_.join();
  }

  void submit(u32 first) {
    for (u32 k = first; k < first + batch; ++k) {
      submitted_[k] = now_ns();
      EXPECT_EQ(bed_.submit(k, k), status{});
    }
  }

  struct results {
    u32 good = 0, late = 0, reset = 0;
  };

  /// Waits for all of them. Each has one result, in time, and of those that are good the data.
  results check() {
    watcher_.join();
    results all;
    for (u32 k = 0; k < 2 * batch; ++k) {
      EXPECT_NE(ended_[k], 0u) << "command " << k << " has no answer";
      EXPECT_EQ(bed_.finished(k) + bed_.abandoned(k), 1u) << "command " << k << " has one result";
      if (ended_[k] == 0) continue;
      EXPECT_LT((ended_[k] - submitted_[k]) / one_millisecond_ns, most_ns / one_millisecond_ns) << "command " << k;
      const status outcome = unpack_status(bed_.record(k).outcome);
      all.good += outcome.ok();
      all.late += outcome == deadline_status;
      all.reset += outcome == resetting_status;
      EXPECT_TRUE(!outcome.ok() || bed_.data_right(k)) << k;
    }
    EXPECT_EQ(all.good + all.late + all.reset, 2 * batch);
    return all;
  }

 private:
  static constexpr u64 most_ns = time_out + cap_to + one_second_ns + slack;

  void watch() {
    backoff patience(20 * one_second_ns);
    for (u32 left = 2 * batch; left != 0 && patience.pause();) {
      bed_.progress();
      for (u32 k = 0; k < 2 * batch; ++k) {
        if (ended_[k] != 0 || !bed_.over(k)) continue;
        ended_[k] = now_ns();
        --left;
      }
    }
  }

  fault_bed& bed_;
  std::vector<u64> submitted_ = std::vector<u64>(2 * batch), ended_ = std::vector<u64>(2 * batch);
  std::thread watcher_;
};

void expect_stage(expected_end end, queue_recovery const& done, pcie_counts const& counts, u32 reset) {
  EXPECT_GT(counts.aborts, 0u) << "which is what is tried first";
  EXPECT_EQ(counts.aborted, end == expected_end::by_aborts ? counts.aborts : 0u);
  switch (end) {
    case expected_end::by_aborts:
      EXPECT_EQ(reset, 0u) << "neighbours are left alone";
      EXPECT_FALSE(done.reset);
      EXPECT_EQ(done.aborted, counts.aborts);
      EXPECT_EQ(counts.resets, 0u);
      break;
    case expected_end::by_deleting:
      EXPECT_GT(reset, 0u) << "else there were no neighbours";
      EXPECT_EQ(done.answered, reset);
      EXPECT_EQ(counts.resets, 0u);
      break;
    default: EXPECT_EQ(counts.resets, 1u);
  }
}

TEST_P(recovery_stages, each_command_has_one_result_in_time) {
  stamped_media media(media_blocks * 512);
  modelled_function function(media.bytes(), slow());
  pcie_controller drive(function, {.queues = 2});
  fault_bed bed(drive, fault_options(256, time_out), 2 * batch + 8, function.memory());
  function.plan(driver_step::abort, GetParam().at_abort);
  function.plan(driver_step::delete_submission_queue, GetParam().at_delete, 1);

  timed_batches commands(bed);
  const u64 begin = now_ns();
  commands.submit(0);
  while (now_ns() < begin + time_out * 3 / 4) std::this_thread::yield();
  commands.submit(batch);
  // Of the first ones some are late, and of the second ones many are in flight.
  const auto expired = [&] { return device_ref<u64>(bed.state().expired).load(relaxed); };  // the watcher adds to it
  EXPECT_TRUE(bed.progress_until([&] { return expired() > 4; }));
  function.never_stops = GetParam().never_stops;
  const u64 started = now_ns();
  const queue_recovery done = bed.pair().recover();
  EXPECT_LT((now_ns() - started) / one_millisecond_ns, (3 * one_second_ns + slack) / one_millisecond_ns)
      << "the time of an admin command is 5 s";
  const auto results = commands.check();
  EXPECT_GT(results.late, 4u);
  expect_stage(GetParam().end, done, drive.counts(), results.reset);
  EXPECT_EQ(function.function_resets, GetParam().end == expected_end::by_function_reset ? 1u : 0u);
  const queue_counts q = bed.counts();
  EXPECT_EQ(q.commands, q.completions - q.strays + q.expired + q.failed + q.reset);

  // And the queue is of use: what is late again is aborted again.
  function.make_peace();
  for (u32 k = 2 * batch; k < 2 * batch + 8; ++k) {
    const status outcome = bed.run(k, k);
    EXPECT_TRUE((outcome.ok() && bed.data_right(k)) || outcome == deadline_status) << k;
  }
  bed.pair().abort_late();
  EXPECT_FALSE(bed.broken());
  for (std::string const& complaint : function.complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
}

// What was late comes by itself while its Abort stays unanswered: a queue that is whole, on a controller that answers nothing.
TEST(recovery_of_a_drive, an_abort_that_is_not_answered_costs_a_reset_also_where_nothing_is_late_any_more) {
  stamped_media media(media_blocks * 512);
  modelled_function_options late;
  late.engine.threads = 1;
  late.engine.faults = {.seed = 1, .late = 1, .late_ns = time_out + 150 * one_millisecond_ns};
  modelled_function function(media.bytes(), late);
  pcie_controller drive(function, {.queues = 1});
  fault_bed bed(drive, fault_options(16, time_out), 4, function.memory());
  function.plan(driver_step::abort, trouble::drop);
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  const queue_recovery done = bed.pair().recover();
  EXPECT_EQ(drive.counts().aborts, 1u);
  EXPECT_EQ(done.aborted, 0u) << "it came, but its identifier stays dead while the Abort may still strike it";
  EXPECT_TRUE(done.reset);
  EXPECT_FALSE(drive.failed());
  EXPECT_EQ(drive.counts().resets, 1u);
  drive.health();
}

// With a controller that has been given up as a whole, nothing is aborted.
TEST(recovery_of_a_drive, a_function_that_is_gone_is_asked_nothing) {
  stamped_media media(media_blocks * 512);
  modelled_function function(media.bytes());
  pcie_controller drive(function, {.queues = 1});
  fault_bed bed(drive, fault_options(16, 50 * one_millisecond_ns), 4, function.memory());
  function.gone = true;
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  EXPECT_EQ(bed.pair().abort_late(), 0u);
  EXPECT_EQ(drive.counts().aborts, 0u);
  EXPECT_FALSE(drive.abort(0, 0, one_millisecond_ns)) << "nor the queue that stands in for the admin queue";
  EXPECT_THROW(bed.reset(), error);
  function.make_peace();
  bed.reset();
  ASSERT_EQ(bed.run(1, 1), status{});
  EXPECT_TRUE(bed.data_right(1));
}

}  // namespace
}  // namespace penstock::test_support
