// `penstock bench cliffs`: its LRU cache, its draws, and a fixed set of configurations by counts, not by times.
#include "libs/bench/cliffs.hpp"
#include "libs/bench/cliff_config.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace penstock::bench {
namespace {

cliff_config small(cliff_pattern pattern, u64 streams, u64 per_stream) {
  cliff_config c;
  c.pattern = pattern;
  c.line_bytes = 512;
  c.data_bytes = 64 * 512;
  c.streams = streams;
  c.per_stream = per_stream;
  return c;
}

TEST(cliffs, an_lru_cache_brings_what_it_lost) {
  const cliff_config c = small(cliff_pattern::uniform, 1, 7);
  const std::vector<u32> elements = {0, 64, 1, 128, 65, 0, 192};  // lines 0 1 0 2 1 0 3
  EXPECT_EQ(simulate_lru(c, elements, 4).fills, 4u);
  EXPECT_EQ(simulate_lru(c, elements, 2).fills, 6u);  // 0 and 1; 2 instead of 1; 1 of 0; 0 of 2; 3 of 1
  EXPECT_EQ(simulate_lru(c, elements, 1).fills, 7u);
}

TEST(cliffs, an_lru_cache_writes_back_what_was_changed) {
  cliff_config c = small(cliff_pattern::uniform, 1, 3);
  const std::vector<u32> elements = {0, 64, 0};
  EXPECT_EQ(simulate_lru(c, elements, 1).write_backs, 0u);
  c.access = cliff_access::add;
  EXPECT_EQ(simulate_lru(c, elements, 2).write_backs, 2u);
  EXPECT_EQ(simulate_lru(c, elements, 1).write_backs, 3u);
}

TEST(cliffs, threads_of_a_gpu_go_side_by_side_in_it) {
  cliff_config c = small(cliff_pattern::uniform, 2, 2);
  const std::vector<u32> elements = {0, 64, 0, 64};  // stream 0: line 0 twice; stream 1: line 1 twice
  EXPECT_EQ(simulate_lru(c, elements, 1).fills, 2u);
  c.lanes = 32;
  EXPECT_EQ(simulate_lru(c, elements, 1).fills, 4u);
  EXPECT_EQ(simulate_lru(c, elements, 1).stalls, 2u) << "both wait at the same time, in each step";
  EXPECT_EQ(simulate_lru(c, elements, 2).stalls, 1u);
  c.access = cliff_access::async;
  EXPECT_EQ(simulate_lru(c, elements, 1).stalls, 1u) << "both steps are on their way together";
  c.access = cliff_access::span;
  EXPECT_EQ(simulate_lru(c, elements, 1).stalls, 4u) << "each stream is a group";
}

TEST(cliffs, patterns_are_what_they_are_called) {
  const auto lines_of = [](cliff_config const& c) {
    std::vector<u64> lines;
    for (const u32 element : elements_of(c)) lines.push_back(element / c.line_elements());
    return lines;
  };
  std::vector<u64> permuted = lines_of(small(cliff_pattern::permuted, 4, 16));
  EXPECT_EQ(std::set<u64>(permuted.begin(), permuted.end()).size(), 64u);
  const std::vector<u64> in_order = lines_of(small(cliff_pattern::in_order, 1, 64));
  EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
  const std::vector<u32> linear = elements_of(small(cliff_pattern::linear, 1, 100));
  for (u32 k = 0; k < linear.size(); ++k) EXPECT_EQ(linear[k], k);
  u64 breaks = 0;
  const std::vector<u32> lists = elements_of(small(cliff_pattern::lists, 1, 4000));
  for (u32 k = 1; k < lists.size(); ++k) breaks += lists[k] != (lists[k - 1] + 1) % 4096 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(breaks), 100, 40);
  cliff_config hot = small(cliff_pattern::hot, 1, 1000);
  hot.data_bytes = 4096 * 512;
  std::set<u64> hot_lines;
  for (const u64 line : lines_of(hot)) hot_lines.insert(line);
  EXPECT_LT(hot_lines.size(), 130u);
  cliff_config resident = small(cliff_pattern::resident, 1, 4000);
  resident.data_bytes = 4096 * 512;
  resident.cache_bytes = 100 * 512;
  std::set<u64> resident_lines;
  for (const u64 line : lines_of(resident)) resident_lines.insert(line);
  EXPECT_LE(resident_lines.size(), 80u);
  EXPECT_GE(resident_lines.size(), 75u) << "but for lines that are drawn twice";
  EXPECT_GT(*resident_lines.rbegin() - *resident_lines.begin(), 2048u);
}

TEST(cliffs, a_seed_draws_one_configuration_and_the_seeds_draw_all_kinds) {
  std::set<std::string> patterns, accesses, sources;
  for (u64 seed = 0; seed < 200; ++seed) {
    const auto one = describe(draw_config(seed, 64 << 20, 4096, 1));
    EXPECT_EQ(one, describe(draw_config(seed, 64 << 20, 4096, 1)));
    patterns.insert(one.at("pattern"));
    accesses.insert(one.at("access"));
    sources.insert(one.at("source"));
    EXPECT_FALSE(one.at("access") == "fetch_add" && one.at("source") == "copied");
  }
  EXPECT_EQ(patterns.size(), 9u);
  EXPECT_EQ(accesses.size(), 6u);
  EXPECT_EQ(sources.size(), 3u);
}

// Every sum is checked by the benchmark itself. Two threads and read-ahead move some more than one LRU cache.
TEST(cliffs, no_configuration_moves_far_more_than_an_lru_cache) {
  cliffs_options options;
  options.executor = "cpu";
  options.configs = 30;
  options.bytes = 4 << 20;
  options.shown = options.configs;
  u64 told = 0;
  options.found = [&](measurement const&) { ++told; };
  const std::vector<measurement> results = run_cliffs_benchmark(options);
  EXPECT_EQ(told, 33u);
  ASSERT_EQ(results.size(), 33u);
  EXPECT_EQ(results[0].id, "cliffs.worst");
  EXPECT_EQ(results[0].values, results[3].values);
  for (measurement const& m : results) {
    EXPECT_TRUE(m.verified);
    EXPECT_GT(m.values[0], 0);
    if (m.id != "cliffs.config") continue;
    EXPECT_LT(m.details.at("fills_over_lru"), 2.5) << "seed " << m.params.at("seed");
  }
}

TEST(cliffs, options_that_cannot_be_are_refused) {
  cliffs_options options;
  options.executor = "cpu";
  options.configs = 0;
  EXPECT_THROW(run_cliffs_benchmark(options), error);
  options.configs = 1;
  options.bytes = 5 << 20;
  EXPECT_THROW(run_cliffs_benchmark(options), error);
}

}  // namespace
}  // namespace penstock::bench
