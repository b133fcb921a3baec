#include "libs/bench/timing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penstock::bench {

timed_samples::timed_samples(executor& on, u64 samples)
    : on_(on), cycles_(on.memory(), memory_kind::local, samples), span_(on.memory(), memory_kind::local, 3) {}

double timed_samples::add_run() {
  std::vector<u64> cycles(cycles_.size()), span(span_.size());
  on_.memory().read(cycles.data(), cycles_.data(), cycles_.bytes());
  on_.memory().read(span.data(), span_.data(), span_.bytes());
  ns_per_cycle_ = static_cast<double>(span[1]) / static_cast<double>(std::max<u64>(1, span[0]));
  std::vector<double> run(cycles.size());
  std::transform(cycles.begin(), cycles.end(), run.begin(),
                 [&](u64 c) { return static_cast<double>(c) * ns_per_cycle_ * 1e-3; });
  all_.insert(all_.end(), run.begin(), run.end());
  coarse_sum_us_ += static_cast<double>(span[2]) * 1e-3;
  return median(run);
}

void timed_samples::describe(measurement& m, std::string const& prefix) const {
  if (all_.empty()) return;
  const double samples = static_cast<double>(all_.size());
  m.details[prefix + "p1_us"] = percentile(all_, 0.01);
  m.details[prefix + "p99_us"] = percentile(all_, 0.99);
  m.details[prefix + "least_us"] = percentile(all_, 0);
  m.details[prefix + "most_us"] = percentile(all_, 1);
  m.details[prefix + "mean_us"] = std::accumulate(all_.begin(), all_.end(), 0.0) / samples;
  if (coarse_sum_us_ > 0) m.details[prefix + "mean_by_coarse_clock_us"] = coarse_sum_us_ / samples;
  m.details[prefix + "ns_per_cycle"] = ns_per_cycle_;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto at = static_cast<std::ptrdiff_t>(std::clamp(rank, 1.0, static_cast<double>(values.size()))) - 1;
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

}  // namespace penstock::bench
