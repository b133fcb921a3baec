// Times that a kernel took of single accesses, as figures.
#pragma once

#include "libs/bench/measurement.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/executor/executor.hpp"

namespace penstock::bench {

/// Where a kernel puts its times, beside what the whole run took by both clocks. Goes to a kernel by value.
struct timed_run {
  u64* cycles = nullptr;  ///< [samples]; now_cycles
  u64* span = nullptr;    ///< cycles of the whole run, its nanoseconds, those of the accesses (0: not taken)
  u64 samples = 0;
};

/// What both clocks say of a run. One per run and thread.
class run_clock {
 public:
  PENSTOCK_FN run_clock() : cycles_(now_cycles()), ns_(now_ns()) {}

  PENSTOCK_FN void write(timed_run const& run, u64 accesses_ns) const {
    run.span[0] = now_cycles() - cycles_;
    run.span[1] = now_ns() - ns_;
    run.span[2] = accesses_ns;
  }

 private:
  u64 cycles_, ns_;
};

/// Owns the memory of timed runs, and turns cycles into microseconds by what both clocks say of each run.
class timed_samples {
 public:
  timed_samples(executor& on, u64 samples);

  timed_run view() const { return {cycles_.data(), span_.data(), cycles_.size()}; }
  void clear() { all_.clear(), coarse_sum_us_ = 0; }
  /// After a run: its times are added to the ones before. Returns the run's median in microseconds.
  double add_run();
  /// What is told of all runs: "p1_us", "p99_us", "least_us", "most_us", "mean_us", the mean by now_ns alone and how long a
  /// cycle was. Of all names `prefix` comes first.
  void describe(measurement& m, std::string const& prefix = "") const;
  double median_us() const { return median(all_); }

 private:
  executor& on_;
  buffer<u64> cycles_, span_;
  std::vector<double> all_;
  double coarse_sum_us_ = 0;
  double ns_per_cycle_ = 0;
};

/// The value that a share of all values do not exceed, 0 of nothing.
double percentile(std::vector<double> values, double share);

}  // namespace penstock::bench
