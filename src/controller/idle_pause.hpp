// How a service thread of the host waits for work.
#pragma once

#include "penstock/core/clock.hpp"

#include <chrono>
#include <thread>

namespace penstock::controllers {

// Hot at first, since the next command or the end of a drive's read is a fraction of a millisecond away, and cheap in the end.
// No yields: on a machine with more threads than cores each costs a whole time slice, and a sleep does not.
class idle_pause {
 public:
  void reset() { idle_since_ns_ = 0; }

  void wait() {
    if (idle_since_ns_ == 0) idle_since_ns_ = now_ns();
    if (now_ns() - idle_since_ns_ < spin_ns) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  static constexpr u64 spin_ns = 200 * one_microsecond_ns;
  u64 idle_since_ns_ = 0;
};

}  // namespace penstock::controllers
