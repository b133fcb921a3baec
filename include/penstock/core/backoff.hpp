// How every waiting loop waits: a little longer each time, and never past its deadline.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/core/config.hpp"

#if defined(PENSTOCK_SCHEDULED)
#include "penstock/core/scheduled.hpp"
#elif !PENSTOCK_ON_DEVICE
#include <thread>
#endif

namespace penstock {

class backoff {
 public:
  PENSTOCK_FN explicit backoff(u64 timeout_ns) : deadline_ns_(now_ns() + timeout_ns) {}

  /// Sleeps (GPU) or yields (CPU). False once the deadline has passed; the caller then looks once more and gives up
  /// (PROTOCOLS.md, W7).
  PENSTOCK_FN bool pause() {
    const bool in_time = now_ns() < deadline_ns_;
#if PENSTOCK_ON_DEVICE
    __nanosleep(sleep_ns_);
    if (sleep_ns_ < longest_sleep_ns) sleep_ns_ *= 2;
#elif defined(PENSTOCK_SCHEDULED)
    scheduled::pause();
#else
    std::this_thread::yield();
#endif
    return in_time;
  }

  PENSTOCK_FN u64 deadline_ns() const { return deadline_ns_; }

 private:
  static constexpr u32 shortest_sleep_ns = 32;
  static constexpr u32 longest_sleep_ns = 4096;

  u64 deadline_ns_;
  [[maybe_unused]] u32 sleep_ns_ = shortest_sleep_ns;  ///< only a GPU sleeps
};

}  // namespace penstock
