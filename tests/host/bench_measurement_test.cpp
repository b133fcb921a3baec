#include "libs/bench/measurement.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

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

}  // namespace
}  // namespace penstock::test
