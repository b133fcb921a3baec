// One measurement, as one JSON line with the fields that every benchmark of Penstock has.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
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

/// Told each measurement as it comes, so that what ends a run early takes none of the ones before it.
using found_fn = std::function<void(measurement const&)>;

/// Measurements of a run, which are told as they come.
class measurement_list {
 public:
  explicit measurement_list(found_fn const& tell) : tell_(tell) {}

  void add(measurement m) {
    if (tell_) tell_(m);
    all_.push_back(std::move(m));
  }
  std::vector<measurement> take() { return std::move(all_); }

 private:
  found_fn const& tell_;
  std::vector<measurement> all_;
};

/// Median, or 0 of nothing.
double median(std::vector<double> values);

/// The measurement as one JSON object. Spread is (largest - smallest) / median. The commit and the date come from
/// PENSTOCK_COMMIT and the clock. An unverified measurement is no result: std::runtime_error.
std::string to_json(measurement const& m);

/// How many commands a run had: a parameter where they were asked for, else a detail, for then they tell no runs apart.
void note_commands(measurement& m, unsigned long long asked, unsigned long long had);

/// Appends it to `path` (folders are made), and prints it.
void write_line(measurement const& m, std::string const& path);

/// CPU, cores, memory, compiler, and the name in PENSTOCK_MACHINE.
std::map<std::string, std::string> describe_host();

}  // namespace penstock::bench
