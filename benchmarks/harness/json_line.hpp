// One measurement, as one JSON line with the fields that every benchmark of Penstock has.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace penstock::benchmarks {

struct measurement {
  std::string id;
  std::map<std::string, std::string> params;
  std::vector<double> values;  ///< one per repeat
  std::string unit;
  std::string baseline;  ///< its name; empty: none
  std::vector<double> baseline_values;
  bool verified = false;
  std::map<std::string, double> bytes;    ///< by tier
  std::map<std::string, double> details;  ///< whatever else was counted
  std::map<std::string, std::string> machine;
};

/// Median, or 0 of nothing.
double median(std::vector<double> values);

/// Appends the line to `path` (folders are made), and prints it. Spread is (largest - smallest) / median. The commit and the
/// date come from PENSTOCK_COMMIT and the clock. An unverified measurement is no result: std::runtime_error.
void write_line(measurement const& m, std::string const& path);

/// CPU, cores, memory, compiler, and the name in PENSTOCK_MACHINE.
std::map<std::string, std::string> describe_host();

}  // namespace penstock::benchmarks
