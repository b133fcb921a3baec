// Measurements and what they are made of: orders, limits, percentiles and the JSON line.
#include "libs/bench/io_plan.hpp"
#include "libs/bench/measurement.hpp"
#include "libs/bench/pattern.hpp"
#include "libs/bench/timing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace penstock::test {
namespace {

bench::measurement measured(std::vector<double> ours, std::vector<double> baseline) {
  bench::measurement m;
  m.id = "a";
  m.values = std::move(ours);
  m.baseline = "b";
  m.baseline_values = std::move(baseline);
  m.verified = true;
  return m;
}

TEST(measurement, tells_the_median_and_its_ratio) {
  const std::string line = bench::to_json(measured({3, 1, 2}, {8}));
  EXPECT_NE(line.find("\"value\": 2, "), std::string::npos) << line;
  EXPECT_NE(line.find("\"ratio\": 0.25, "), std::string::npos) << line;
}

TEST(measurement, is_json_also_where_a_ratio_is_no_number) {
  const std::string line = bench::to_json(measured({0, 0}, {0}));
  EXPECT_NE(line.find("\"ratio\": null, "), std::string::npos) << line;
  EXPECT_NE(line.find("\"spread\": null, "), std::string::npos) << line;
}

TEST(measurement, is_no_result_until_it_is_verified) {
  bench::measurement m = measured({1}, {1});
  m.verified = false;
  EXPECT_THROW(bench::to_json(m), std::runtime_error);
}

TEST(bench_io, limits_are_those_of_drives_units_link_and_threads) {
  bench::io_options drives;
  EXPECT_EQ(bench::drive_limit(drives, 1000, 1000), 0);  // no preset: nothing limits it
  drives.preset = "p5800x";
  constexpr u64 many = 1 << 30;
  EXPECT_NEAR(bench::drive_limit(drives, 1e6, many), 5.1e6, 1e3);
  EXPECT_NEAR(bench::drive_limit(drives, 10, many), 1e6, 1e3);        // Little's law: 10 in 10 us
  EXPECT_NEAR(bench::drive_limit(drives, 100, 51), 51 / 20e-6, 1e3);  // the first is done after 10 us, the last 10 us later
  drives.block_bytes = 8192;
  EXPECT_NEAR(bench::drive_limit(drives, 1e6, many), 0.75e6, 1e3);
  drives.block_bytes = 512;
  drives.write_percent = 100;
  EXPECT_NEAR(bench::drive_limit(drives, 1e6, many), 1.03e6, 1e3);
  drives.write_percent = 0;
  drives.drives = 10;
  EXPECT_NEAR(bench::drive_limit(drives, 1e6, many), 51e6, 1e5);
  drives.link = "gen4x16";
  EXPECT_NEAR(bench::drive_limit(drives, 1e6, many), 26.9e9 / 600, 1e5);  // two packets and a completion
}

TEST(bench_timing, percentiles_are_values_that_were_measured) {
  EXPECT_EQ(bench::percentile({}, 0.5), 0);
  EXPECT_EQ(bench::percentile({3, 1, 2}, 0), 1);
  EXPECT_EQ(bench::percentile({3, 1, 2}, 1), 3);
  std::vector<double> hundred(100);
  for (std::size_t k = 0; k < 100; ++k) hundred[k] = static_cast<double>(k + 1);
  EXPECT_EQ(bench::percentile(hundred, 0.99), 99);
}

TEST(bench_pattern, every_order_of_lines_visits_each_once) {
  for (const auto order :
       {bench::line_order::random, bench::line_order::linear, bench::line_order::strided, bench::line_order::coarsened}) {
    for (const u64 step : {1, 4, 1024}) {
      const bench::pattern p{.elements = 0, .line_elements = 0, .step = step, .lines = order};
      std::vector<bool> seen(256);
      for (u64 k = 0; k < seen.size(); ++k) seen[p.sequence(seen.size()).at(k)] = true;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 256);
    }
  }
}

}  // namespace
}  // namespace penstock::test
