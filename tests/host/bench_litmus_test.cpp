// `penstock bench litmus` alone, without the other topics: a mutant of what it looks at compiles quickly.
#include "libs/bench/litmus.hpp"

#include <gtest/gtest.h>

namespace penstock::test {
namespace {

TEST(bench_litmus, no_order_lets_another_fill_through) {
  bench::litmus_options options;
  options.executor = "cpu";
  options.rounds = 200000;
  options.groups = 2;
  options.repeats = 2;
  const auto all = bench::run_litmus_benchmark(options);
  ASSERT_EQ(all.size(), 3u);
  for (auto const& m : all) {
    EXPECT_EQ(m.details.at("refills"), 400000) << m.id;
    EXPECT_GT(m.details.at("accepted"), 0) << m.id;
  }
}

}  // namespace
}  // namespace penstock::test
