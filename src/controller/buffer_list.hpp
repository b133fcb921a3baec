// The memory that the host has told of (controller::add_buffer), for engines that register memory with the kernel.
#pragma once

#include "penstock/core/atomic.hpp"

#include <mutex>
#include <vector>

namespace penstock::controllers {

struct known_buffer {
  u64 number = 0;  ///< never used twice, so that new memory at an old address is told apart
  u64 begin = 0;
  u64 end = 0;

  bool holds(u64 address, u64 bytes) const { return address >= begin && address < end && bytes <= end - address; }
};

/// Thread-safe.
class buffer_list {
 public:
  /// Older buffers that overlap are forgotten: their memory has been freed, or it could not have been given out again.
  void add(void* memory, u64 bytes);

  /// Grows with every add.
  u64 version() const { return version_.load(acquire); }

  std::vector<known_buffer> copy() const;

 private:
  mutable std::mutex mutex_;
  std::vector<known_buffer> buffers_;
  u64 next_number_ = 1;
  std::atomic<u64> version_{0};
};

}  // namespace penstock::controllers
