// One measurement, as one JSON line with the fields that every benchmark of Penstock has.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace penstock::bench {

struct measurement {
  std::string id;
  std::map<std::string, std::string> params;
  std::vector<double> values;  ///< one per repeat
  std::string unit;
  std::string baseline;  ///< its name; empty: none
  std::vector<double> baseline_values;
  bool verified = false;
  unsigned sms = 0;                       ///< multiprocessors that issued; 0: none did
  unsigned warps = 0;                     ///< that ran at once
  unsigned registers = 0;                 ///< of the kernel, per thread
  std::map<std::string, double> bytes;    ///< by tier
  std::map<std::string, double> details;  ///< whatever else was counted
  std::map<std::string, std::string> machine;
};

/// Median, or 0 of nothing.
double median(std::vector<double> values);

/// The measurement as one JSON object. Spread is (largest - smallest) / median. The commit and the date come from
/// PENSTOCK_COMMIT and the clock. An unverified measurement is no result: std::runtime_error.
std::string to_json(measurement const& m);

/// Appends it to `path` (folders are made), and prints it.
void write_line(measurement const& m, std::string const& path);

/// CPU, cores, memory, compiler, and the name in PENSTOCK_MACHINE.
std::map<std::string, std::string> describe_host();

}  // namespace penstock::bench
