// Host memory of other owners that kernels reach: its pages, pinned and counted.
#pragma once

#include "penstock/core/config.hpp"

#include <mutex>
#include <vector>

namespace penstock {

/// CUDA pins whole pages, and refuses a page twice, while small allocations of a heap share pages. So what is pinned are pieces
/// of whole pages, each counted by the ranges that have a page of it. Thread-safe.
class registered_pages {
 public:
  static registered_pages& all();

  /// As memory_resource::register_host, for the current device.
  bool add(void* address, u64 bytes, bool writable);
  void remove(void* address, u64 bytes) noexcept;

 private:
  struct piece {
    u64 begin, end;
    u32 users;
  };

  /// Calls use(piece) for those that have a page of [begin, end).
  template <class Use>
  void each_of(u64 begin, u64 end, Use const& use) {
    for (piece& p : pieces_) {
      if (p.begin < end && begin < p.end) use(p);
    }
  }
  void pin_gaps(u64 begin, u64 end, bool writable);
  void drop_unused(u64 begin, u64 end) noexcept;

  std::mutex mutex_;
  std::vector<piece> pieces_;  ///< under mutex_, by address, none overlaps another
};

}  // namespace penstock
