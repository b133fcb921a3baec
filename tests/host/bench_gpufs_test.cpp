// `penstock bench gpufs`: each pattern is measured beside its baseline, and verified.
#include "libs/bench/gpufs.hpp"
#include "libs/bench/topics.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <map>

namespace penstock::test {
namespace {

using bench::measurement;
using bench::option_texts;

std::vector<measurement> measure_gpufs(option_texts options) {
  options.insert({{"executor", "cpu"}, {"repeats", "1"}, {"mib", "1"}, {"threads", "2"}});
  return bench::run_topic("gpufs", options);
}

TEST(bench_gpufs, has_every_pattern_of_a_cpu) {
  std::map<std::string, u32> found;
  for (measurement const& m : measure_gpufs({})) {
    EXPECT_TRUE(m.verified) << m.id;
    EXPECT_EQ(m.values.size(), 1u) << m.id;
    EXPECT_EQ(m.baseline_values.size(), 1u) << m.id;
    EXPECT_GT(bench::median(m.values), 0) << m.id;
    ++found[m.id];
  }
  const std::map<std::string, u32> expected = {{"gpufs.directory", 1}, {"gpufs.allocator", 1},     {"gpufs.allocators", 1},
                                               {"gpufs.batching", 1},  {"gpufs.original.warm", 1}, {"gpufs.original.cold", 1},
                                               {"gpufs.insert", 1},    {"gpufs.page", 5},          {"gpufs.search", 5},
                                               {"gpufs.workers", 4}};
  EXPECT_EQ(found, expected);
}

TEST(bench_gpufs, takes_orders_and_workers) {
  for (char const* order : {"random", "skewed", "zipf", "linear"}) {
    const auto all =
        measure_gpufs({{"order", order}, {"patterns", "allocators,original"}, {"workers", "2"}, {"cache-mib", "1"}});
    ASSERT_EQ(all.size(), 3u);
    for (measurement const& m : all) {
      EXPECT_EQ(m.params.at("order"), order);
      EXPECT_EQ(m.params.at("workers"), "2");
    }
  }
}

TEST(bench_gpufs, larger_pages_move_more_bytes_than_are_read) {
  const auto all = measure_gpufs({{"patterns", "page"}});
  EXPECT_GT(all[0].details.at("gpufs_redundancy"), 1.0);
  for (u32 k = 1; k < 5; ++k) {
    EXPECT_GT(all[k].details.at("gpufs_redundancy"), all[k - 1].details.at("gpufs_redundancy"));
    EXPECT_GT(all[k].details.at("redundancy"), all[k - 1].details.at("redundancy"));
  }
}

TEST(bench_gpufs, refuses_in_one_sentence_what_cannot_be) {
  const auto refusal = [](option_texts const& options) -> std::string {
    try {
      measure_gpufs(options);
    } catch (error const& e) {
      EXPECT_EQ(e.kind(), error_kind::bad_input) << e.what();
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal({{"patterns", "level"}}), "");
  EXPECT_NE(refusal({{"patterns", "tree"}}), "");
  EXPECT_NE(refusal({{"order", "backwards"}}), "");
  EXPECT_NE(refusal({{"line", "1000"}}), "");
  EXPECT_NE(refusal({{"workers", "9"}}), "");
  EXPECT_NE(refusal({{"repeats", "0"}}), "");
}

}  // namespace
}  // namespace penstock::test
