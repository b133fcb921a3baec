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

/// Lets others run for about so long: sleeps (GPU) or yields (CPU).
PENSTOCK_FN inline void let_others_run([[maybe_unused]] u64 ns) {
#if PENSTOCK_ON_DEVICE
  __nanosleep(static_cast<u32>(ns));
#elif defined(PENSTOCK_SCHEDULED)
  scheduled::pause();
#else
  std::this_thread::yield();
#endif
}

class backoff {
 public:
  PENSTOCK_FN explicit backoff(u64 timeout_ns) : deadline_ns_(now_ns() + timeout_ns) {}

  /// Sleeps (GPU) or yields (CPU). False once the deadline has passed; the caller then looks once more and gives up
  /// (PROTOCOLS.md, W7).
  PENSTOCK_FN bool pause() {
    const bool in_time = now_ns() < deadline_ns_;
    let_others_run(sleep_ns_);
    if (sleep_ns_ < longest_sleep_ns) sleep_ns_ *= 2;
    return in_time;
  }

  PENSTOCK_FN u64 deadline_ns() const { return deadline_ns_; }

 private:
  static constexpr u32 shortest_sleep_ns = 32;
  static constexpr u32 longest_sleep_ns = 4096;

  u64 deadline_ns_;
  u32 sleep_ns_ = shortest_sleep_ns;
};

/// The wait of one thread between looks that cost little: each time a small part of what it has waited.
class brief_wait {
 public:
  PENSTOCK_FN explicit brief_wait(u64 timeout_ns) : begun_ns_(now_ns()), timeout_ns_(timeout_ns) {}

  /// False once the time is up.
  PENSTOCK_FN bool pause() const {
    const u64 waited = now_ns() - begun_ns_;
    let_others_run(waited / 64);
    return waited < timeout_ns_;
  }

 private:
  u64 begun_ns_;
  u64 timeout_ns_;
};

}  // namespace penstock
