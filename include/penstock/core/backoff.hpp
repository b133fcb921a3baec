// How every waiting loop waits: a little longer each time, and never past its deadline.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/core/config.hpp"

#if defined(PENSTOCK_SCHEDULED)
#include "penstock/core/scheduled.hpp"
#elif !PENSTOCK_ON_DEVICE
#include <chrono>
#include <thread>
#endif

namespace penstock {

/// A CPU thread sleeps for so long or longer, and spins for less: a sleep costs some microseconds.
inline constexpr u64 worth_a_sleep_ns = 4096;

/// Whether this CPU thread yields where others spin or sleep: for threads by the dozen on one core that wait for each other, as
/// the lanes of an emulated warp.
inline bool& waits_by_yielding() {
  thread_local bool yields = false;
  return yields;
}

/// Lets others run for about so long. A CPU thread does not yield by itself: beside other processes, that costs it a time slice
/// of milliseconds where what it waits for takes microseconds.
PENSTOCK_FN inline void let_others_run([[maybe_unused]] u64 ns) {
#if PENSTOCK_ON_DEVICE
  __nanosleep(static_cast<u32>(ns));
#elif defined(PENSTOCK_SCHEDULED)
  scheduled::pause();
#else
  if (waits_by_yielding()) return std::this_thread::yield();
  if (ns >= worth_a_sleep_ns) return std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  const u64 until_ns = now_ns() + ns;
  do {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  } while (now_ns() < until_ns);
#endif
}

/// The same between two looks of a wait of unknown length: a CPU thread sleeps from some round on.
PENSTOCK_FN inline void let_others_run(u64 ns, [[maybe_unused]] u32 round) {
#if !PENSTOCK_ON_DEVICE
  constexpr u32 rounds_of_spinning = 32;
  if (round > rounds_of_spinning && ns < worth_a_sleep_ns) ns = worth_a_sleep_ns;
#endif
  let_others_run(ns);
}

class backoff {
 public:
  PENSTOCK_FN explicit backoff(u64 timeout_ns) : deadline_ns_(now_ns() + timeout_ns) {}

  /// False once the deadline has passed; the caller then looks once more and gives up (PROTOCOLS.md, W7).
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
    let_others_run(waited / part_);
    return waited < timeout_ns_;
  }

 private:
  static constexpr u64 part_ = PENSTOCK_ON_DEVICE ? 64 : 8;

  u64 begun_ns_;
  u64 timeout_ns_;
};

}  // namespace penstock
