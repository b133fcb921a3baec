// One clock for deadlines: nanoseconds that only grow, on either executor (a deadline never crosses from one to the other).
#pragma once

#include "penstock/core/config.hpp"

#include <chrono>

namespace penstock {

PENSTOCK_FN inline u64 now_ns() {
#if PENSTOCK_ON_DEVICE
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
#else
  return static_cast<u64>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

inline constexpr u64 one_microsecond_ns = 1'000;
inline constexpr u64 one_millisecond_ns = 1'000'000;
inline constexpr u64 one_second_ns = 1'000'000'000;

}  // namespace penstock
