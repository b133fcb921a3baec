// The harness itself: what it runs, and that a body's failure cannot pass unseen.
#include "support/run_everywhere.hpp"

#include <gtest/gtest-spi.h>

#include <set>

namespace penstock::test {
namespace {

TEST(check_report, keeps_the_first_failure_and_counts_the_rest) {
  check_report report;
  EXPECT_TRUE(PENSTOCK_CHECK(report, 1 < 2));
  EXPECT_TRUE(report.clean());
  const u32 line = __LINE__ + 1;
  EXPECT_FALSE(PENSTOCK_CHECK_EQ(report, 7, u32{9}));
  EXPECT_FALSE(PENSTOCK_CHECK(report, false));
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(2u, report.failures);
  EXPECT_EQ(line, report.first_line);
  EXPECT_EQ(7u, report.expected);
  EXPECT_EQ(9u, report.found);
}

TEST(check_report, counts_failures_of_many_threads) {
  check_report report;
  run_threads(8, [&](u32 i) {
    for (u32 k = 0; k < 100; ++k) PENSTOCK_CHECK_EQ(report, i, i + 1);
  });
  EXPECT_EQ(800u, report.failures);
  EXPECT_EQ(report.expected + 1, report.found);
}

TEST(check_report, a_body_that_checked_nothing_is_a_failure) {
  EXPECT_NONFATAL_FAILURE(expect_clean(check_report{}, "here"), "here: no check has run");
}

TEST(run_threads, first_exception_reaches_the_caller) {
  EXPECT_THROW(run_threads(4,
                           [](u32 i) {
                             if (i == 2) throw std::out_of_range("2");
                           }),
               std::out_of_range);
}

/// Fails in groups of `bad_size`.
struct fails_by_size {
  u32 bad_size;

  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    PENSTOCK_CHECK(*c.report, size(g) != bad_size);
  }
};

TEST(run_everywhere, a_failure_names_the_run_and_the_line) {
  fails_by_size body{1};
  EXPECT_NONFATAL_FAILURE(run_lone(body, 3, 42), "3 lone threads, seed 42: line ");
  body.bad_size = 32;
  EXPECT_NONFATAL_FAILURE(run_warps(body, "one whole warp", {{0xffffffffu}}, 42), "failed checks: 32)");
  run_lone(body, 3, 42);
}

struct misuses_its_group {
  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    PENSTOCK_CHECK(*c.report, true);
    if (g.rank() != 5) g.ballot(true);
  }
};

TEST(run_everywhere, a_misuse_is_a_failure_of_the_run) {
  misuses_its_group body;
  EXPECT_NONFATAL_FAILURE(run_warps(body, "part", {{0x60u}}, 1), "ballot on mask 60 has only lanes 40; lane 5 has left");
}

/// Counts the calls of its hooks, and each run's threads and groups.
struct counts_runs {
  std::set<u32> threads, groups;
  std::mutex mutex;
  u32 prepared = 0, verified = 0;

  void prepare(run_shape) {
    ++prepared;
    threads.clear();
    groups.clear();
  }
  void verify(check_report& report, run_shape shape) {
    ++verified;
    PENSTOCK_CHECK(report, !threads.empty() && *threads.rbegin() < shape.threads);
    PENSTOCK_CHECK(report, !groups.empty() && *groups.rbegin() < shape.groups);
  }
};

struct counts_runs_body {
  counts_runs* counts;

  void prepare(run_shape shape) { counts->prepare(shape); }
  void verify(check_report& report, run_shape shape) { counts->verify(report, shape); }

  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    const std::scoped_lock lock(counts->mutex);
    PENSTOCK_CHECK(*c.report, counts->threads.insert(c.thread).second);
    if (is_leader(g)) PENSTOCK_CHECK(*c.report, counts->groups.insert(c.group).second);
  }
};

TEST(run_everywhere, every_thread_and_group_has_its_own_number) {
  counts_runs counts;
  run_everywhere(counts_runs_body{&counts}, {.partitions = 3});
  EXPECT_EQ(7u, counts.prepared);
  EXPECT_EQ(7u, counts.verified);
}

}  // namespace
}  // namespace penstock::test
