// The lives of a controller: each reset begins another, and what belonged to the last one is gone.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/executor/memory.hpp"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace penstock::pcie {

struct lives {
  std::shared_mutex gate;  ///< shared: to write a doorbell; exclusive: to turn the controller on or off
  std::atomic<u64> current{1};
  std::atomic<u64> refused_doorbells{0};
  std::atomic<u64> doorbells{0};         ///< of I/O queues, stored in registers
  std::atomic<u64> spared_doorbells{0};  ///< that the controller reads in memory, and nobody stored in a register

  /// Keeps a page that the device may still write until it is stopped.
  void retire(buffer<std::byte> page) {
    const std::lock_guard lock(mutex);
    retired.push_back(std::move(page));
  }
  void end() {
    current.fetch_add(1);
    const std::lock_guard lock(mutex);
    retired.clear();
  }

  std::mutex mutex;
  std::vector<buffer<std::byte>> retired;
};

}  // namespace penstock::pcie
