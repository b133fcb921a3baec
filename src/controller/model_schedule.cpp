#include "model_schedule.hpp"

#include "penstock/core/clock.hpp"

#include <algorithm>

namespace penstock::controllers {

model_schedule::model_schedule(model_options const& options)
    : service_time_ns_(options.service_time_ns), interval_ns_(options.iops_limit > 0 ? 1e9 / options.iops_limit : 0),
      origin_ns_(now_ns()) {
  if (service_time_ns_ == 0) return;  // units are never busy
  for (u32 k = 0; k < options.parallelism; ++k) free_at_.push(0);
}

u64 model_schedule::admit(u64 now_ns) {
  if (service_time_ns_ == 0 && interval_ns_ == 0) return now_ns;
  const std::lock_guard lock(mutex_);
  u64 start = now_ns;
  if (interval_ns_ != 0) {
    const double since_origin = std::max(static_cast<double>(now_ns - origin_ns_), next_start_ns_);
    next_start_ns_ = since_origin + interval_ns_;
    start = origin_ns_ + static_cast<u64>(since_origin);
  }
  if (free_at_.empty()) return start;
  const u64 done = std::max(start, free_at_.top()) + service_time_ns_;
  free_at_.pop();
  free_at_.push(done);
  return done;
}

}  // namespace penstock::controllers
