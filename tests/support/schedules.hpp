// Runs a scenario under many schedules, each made from a seed alone.
#pragma once

#include "support/scheduler.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace penstock::test {

/// What is to be tried: seeds first to last, half of them by PCT and half by random walks.
struct schedule_plan {
  u64 seeds = 0;
  u64 expected_steps = 4000;  ///< of one run, about
};

inline schedule_options schedule_of(u64 seed, schedule_plan const& plan) {
  schedule_options options;
  options.seed = seed;
  options.how = seed % 2 == 0 ? strategy::random_walk : strategy::pct;
  options.depth = 2 + static_cast<u32>(seed / 2 % 3);
  options.expected_steps = plan.expected_steps;
  options.rate = 2u << seed / 2 % 6;
  return options;
}

/// What a scenario came to under one schedule.
struct scenario_outcome {
  schedule_outcome schedule;
  std::string wrong;  ///< empty: nothing
  u64 result = 0;     ///< hash of what it left
};

/// `scenario(options)` gives a scenario_outcome. The first failure ends it, and names the seed and how to run it again:
/// PENSTOCK_TEST_SEED runs one seed alone.
template <class Scenario>
void try_schedules(schedule_plan const& plan, Scenario const& scenario) {
  char const* const only = std::getenv("PENSTOCK_TEST_SEED");
  const u64 first = only != nullptr ? std::strtoull(only, nullptr, 0) : 1;
  const u64 last = only != nullptr ? first : plan.seeds;
  auto const& test = *::testing::UnitTest::GetInstance()->current_test_info();
  u64 steps = 0, longest = 0, switches = 0;
  for (u64 seed = first; seed <= last; ++seed) {
    const scenario_outcome done = scenario(schedule_of(seed, plan));
    const std::string wrong = done.schedule.failure.empty() ? done.wrong : done.schedule.failure;
    ASSERT_EQ("", wrong) << "seed " << seed << ", again: PENSTOCK_TEST_SEED=" << seed
                         << " schedule_tests --gtest_filter=" << test.test_suite_name() << '.' << test.name();
    steps += done.schedule.steps;
    switches += done.schedule.switches;
    longest = std::max(longest, done.schedule.steps);
  }
  ::testing::Test::RecordProperty("steps", std::to_string(steps / (last - first + 1)));
  ::testing::Test::RecordProperty("longest", std::to_string(longest));
  ::testing::Test::RecordProperty("switches", std::to_string(switches / (last - first + 1)));
}

/// Two runs of a seed are one: the same threads went on at the same steps, and left the same.
template <class Scenario>
void expect_repeatable(schedule_plan const& plan, Scenario const& scenario) {
  for (u64 seed = 1; seed <= 8; ++seed) {
    const scenario_outcome once = scenario(schedule_of(seed, plan));
    const scenario_outcome again = scenario(schedule_of(seed, plan));
    EXPECT_EQ(once.schedule.trace, again.schedule.trace) << "seed " << seed;
    EXPECT_EQ(once.schedule.steps, again.schedule.steps) << "seed " << seed;
    EXPECT_EQ(once.result, again.result) << "seed " << seed;
    EXPECT_NE(once.schedule.trace, scenario(schedule_of(seed + 8, plan)).schedule.trace) << "seed " << seed;
  }
}

}  // namespace penstock::test
