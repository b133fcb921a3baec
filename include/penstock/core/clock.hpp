// One clock for deadlines: nanoseconds that only grow, on either executor (a deadline never crosses from one to the other).
#pragma once

#include "penstock/core/config.hpp"

#if defined(PENSTOCK_SCHEDULED)
#include "penstock/core/scheduled.hpp"
#else
#include <chrono>
#endif

namespace penstock {

PENSTOCK_FN inline u64 now_ns() {
#if PENSTOCK_ON_DEVICE
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
#elif defined(PENSTOCK_SCHEDULED)
  return scheduled::now_ns();
#else
  return static_cast<u64>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

/// For times shorter than a step of `now_ns`: cycles of this thread's multiprocessor on GPUs, whose length changes with its
/// clock and is measured beside `now_ns`; nanoseconds on a CPU.
PENSTOCK_FN inline u64 now_cycles() {
#if PENSTOCK_ON_DEVICE
  u64 cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  return cycles;
#else
  return now_ns();
#endif
}

/// Between two values that `now_ns` takes; on GPUs 32 ns to 1 us. Takes a few of these steps to find out.
PENSTOCK_FN inline u64 clock_step_ns() {
#if PENSTOCK_ON_DEVICE
  u64 least = ~0ull;
  for (u64 k = 0, last = now_ns(); k < 6;) {
    const u64 now = now_ns();
    if (now == last) continue;
    if (k++ != 0 && now - last < least) least = now - last;  // the first step had begun before we looked
    last = now;
  }
  return least;
#else
  return 1;
#endif
}

/// `now_ns` with the steps filled in: cycles are counted on from the last look, and what comes out is kept within the step that
/// now_ns says. So neither a wrong guess of the cycle's length nor a clock that changes its speed adds up. One per thread.
class fine_clock {
 public:
  PENSTOCK_FN fine_clock(u64 step_ns, float ns_per_cycle) : step_ns_(step_ns), ns_per_cycle_(ns_per_cycle) {}

  PENSTOCK_FN u64 now() {
    const u64 coarse = now_ns();
#if PENSTOCK_ON_DEVICE
    if (step_ns_ <= 64) return coarse;
    const u64 cycles = now_cycles();
    const u64 guess = last_ns_ + static_cast<u64>(static_cast<float>(cycles - last_cycles_) * ns_per_cycle_);
    last_cycles_ = cycles;
    last_ns_ = guess < coarse ? coarse : guess > coarse + step_ns_ ? coarse + step_ns_ : guess;
    return last_ns_;
#else
    return coarse;
#endif
  }

 private:
  [[maybe_unused]] u64 step_ns_;
  [[maybe_unused]] float ns_per_cycle_;
  [[maybe_unused]] u64 last_ns_ = 0;
  [[maybe_unused]] u64 last_cycles_ = 0;
};

inline constexpr u64 one_microsecond_ns = 1'000;
inline constexpr u64 one_millisecond_ns = 1'000'000;
inline constexpr u64 one_second_ns = 1'000'000'000;

}  // namespace penstock
