// When the modelled drive is done with a command: units that serve at once, a service time, an IOPS limit; first come, first
// served over all queues.
#pragma once

#include "penstock/controller/model_controller.hpp"

#include <functional>
#include <mutex>
#include <queue>
#include <vector>

namespace penstock::controllers {

/// Thread-safe.
class model_schedule {
 public:
  explicit model_schedule(model_options const& options);

  /// Takes on a command that was fetched at `now_ns` and says when it is done.
  u64 admit(u64 now_ns);

 private:
  std::mutex mutex_;
  u64 service_time_ns_;
  double interval_ns_;  ///< between two starts; 0: no limit
  u64 origin_ns_;       ///< next_start_ns_ counts from here, so that a double keeps its fractions for months
  double next_start_ns_ = 0;
  std::priority_queue<u64, std::vector<u64>, std::greater<>> free_at_;  ///< one of each unit
};

}  // namespace penstock::controllers
