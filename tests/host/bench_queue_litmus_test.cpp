// `penstock bench litmus --test queue` alone, without the other topics: a mutant of what it looks at compiles quickly.
#include "libs/bench/queue_litmus.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

namespace penstock::test {
namespace {

bench::queue_litmus_options small_run(std::vector<std::string> orders) {
  bench::queue_litmus_options options;
  options.executor = "cpu";
  options.rounds = 4000;
  options.orders = std::move(orders);
  return options;
}

std::string failure_of(bench::queue_litmus_options const& options) {
  try {
    bench::run_queue_litmus(options);
    return "nothing";
  } catch (error const& e) {
    return e.what();
  }
}

TEST(bench_queue_litmus, messages_of_each_round_arrive_both_ways) {
  bench::queue_litmus_options options = small_run({"sound"});
  options.queues = 2;
  options.queue_depth = 4;  // many laps of both rings
  options.repeats = 2;
  const auto all = bench::run_queue_litmus(options);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "litmus.queue_submission");
  EXPECT_EQ(all[1].id, "litmus.queue_completion");
  for (auto const& m : all) {
    EXPECT_EQ(m.details.at("messages"), 8000) << m.id;
    EXPECT_EQ(m.details.at("wrong"), 0) << m.id;
    EXPECT_EQ(m.values.size(), 2u) << m.id;
  }
}

TEST(bench_queue_litmus, a_message_that_nobody_wrote_is_counted_both_ways) {
  bench::queue_litmus_options options = small_run({"sound"});
  options.rounds = 400;
  options.sharers = 2;
  options.spoiled = 3;
  const std::string told = failure_of(options);
  EXPECT_NE(told.find("6 of 400 messages to controllers"), std::string::npos) << told;
  EXPECT_NE(told.find("6 of 400 messages back"), std::string::npos) << told;
  EXPECT_NE(told.find("0 commands were not answered"), std::string::npos) << told;
}

// What a CPU lets through is its own affair; but what is wrong is counted, and only a run that saw something is sensitive.
TEST(bench_queue_litmus, without_an_order_it_says_whether_it_saw_anything) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "without an order there is a data race, which is the point";
#endif
  for (const u64 spoiled : {u64{0}, u64{5}}) {
    bench::queue_litmus_options options = small_run({"relaxed", "unordered"});
    options.rounds = 500;
    options.spoiled = spoiled;
    const auto all = bench::run_queue_litmus(options);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].id, "litmus.queue_submission.relaxed");
    EXPECT_EQ(all[3].id, "litmus.queue_completion.unordered");
    for (auto const& m : all) {
      EXPECT_EQ(m.details.at("messages"), 500) << m.id;
      EXPECT_GE(m.details.at("wrong"), static_cast<double>(spoiled)) << m.id;
      EXPECT_EQ(m.details.at("insensitive"), m.details.at("wrong") + m.details.at("unanswered") == 0 ? 1 : 0) << m.id;
    }
  }
}

TEST(bench_queue_litmus, refuses_what_cannot_be) {
  bench::queue_litmus_options options = small_run({"hasty"});
  EXPECT_NE(failure_of(options).find("no order hasty: choose of sound, relaxed, unordered"), std::string::npos);
  options = small_run({"sound"});
  options.queue_depth = 48;
  EXPECT_NE(failure_of(options).find("48 entries: choose a power of two"), std::string::npos);
  options = small_run({"sound"});
  options.sharers = 0;
  EXPECT_NE(failure_of(options).find("0 sharers"), std::string::npos);
  options = small_run({"sound"});
  options.data = "tape";
  EXPECT_NE(failure_of(options).find("place tape"), std::string::npos);
}

}  // namespace
}  // namespace penstock::test
