// A small number that spreads threads over shards and queues: the multiprocessor on a GPU, the thread on a CPU.
#pragma once

#include "penstock/core/config.hpp"

#if !PENSTOCK_ON_DEVICE
#include <atomic>
#endif

namespace penstock {

#if !PENSTOCK_ON_DEVICE
/// Threads are numbered as they first ask; an executor numbers its own from 0, so that each gets a queue of its own.
inline u32& thread_ordinal() {
  static std::atomic<u32> next{0};
  thread_local u32 mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}
#endif

PENSTOCK_FN inline u32 executor_ordinal() {
#if PENSTOCK_ON_DEVICE
  u32 multiprocessor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  return multiprocessor;
#else
  return thread_ordinal();
#endif
}

}  // namespace penstock
