// Reports of calls under way, and of those that a graph keeps. Thread-safe.
#pragma once

#include "penstock/executor/memory.hpp"
#include "row_job.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace penstock::rows {

/// In memory that host and kernels share.
class report_pool {
 public:
  explicit report_pool(memory_resource& memory) : memory_(memory) {}

  row_report* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      chunks_.emplace_back(memory_, memory_kind::shared, reports_in_chunk);
      for (u64 k = 0; k < reports_in_chunk; ++k) free_.push_back(chunks_.back().data() + k);
    }
    row_report* const report = free_.back();
    free_.pop_back();
    *report = {};
    return report;
  }
  void give_back(row_report* report) {
    const std::lock_guard lock(mutex_);
    free_.push_back(report);
  }

  /// A graph writes to it whenever it runs: it is never another call's.
  void keep(row_report* report) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(report);
  }
  /// What is in those that are kept, as one: the lowest position, and some failure. They begin anew; what a graph that runs
  /// meanwhile tells may be lost.
  row_report collect() {
    const std::lock_guard lock(mutex_);
    row_report all;
    for (row_report* const each : kept_) {
      all.first_bad = std::min(all.first_bad, each->first_bad);
      if (each->failure != 0) all.failure = each->failure;
      *each = {};
    }
    return all;
  }

 private:
  static constexpr u64 reports_in_chunk = 64;

  memory_resource& memory_;
  std::mutex mutex_;
  std::vector<buffer<row_report>> chunks_;
  std::vector<row_report*> free_, kept_;
};

}  // namespace penstock::rows
