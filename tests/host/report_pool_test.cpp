// Reports of calls on rows, and those that graphs keep.
#include "src/rows/report_pool.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(report_pools, collect_what_graphs_keep_and_give_it_to_nobody_else) {
  rows::report_pool pool(cpu_memory());
  rows::row_report* const first = pool.take();
  rows::row_report* const second = pool.take();
  rows::row_report* const other = pool.take();
  pool.keep(first);
  pool.keep(second);
  EXPECT_EQ(pool.collect().first_bad, ~0ull);

  first->first_bad = 9;
  second->first_bad = 4;
  second->failure = 77;
  other->first_bad = 1;
  const rows::row_report all = pool.collect();
  EXPECT_EQ(all.first_bad, 4u);
  EXPECT_EQ(all.failure, 77u);
  EXPECT_EQ(pool.collect().first_bad, ~0ull) << "told once";
  EXPECT_EQ(other->first_bad, 1u) << "a call under way";

  pool.give_back(other);
  for (int k = 0; k < 200; ++k) {
    rows::row_report* const next = pool.take();
    EXPECT_NE(next, first);
    EXPECT_NE(next, second);
    EXPECT_EQ(next->first_bad, ~0ull);
  }
}

}  // namespace
}  // namespace penstock
