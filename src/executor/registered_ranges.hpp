// Host memory of other owners that kernels reach: ranges that are pinned, and counted.
#pragma once

#include "penstock/core/config.hpp"

#include <mutex>
#include <vector>

namespace penstock {

/// CUDA refuses a byte twice, while arrays may lie over parts of one another's memory. So what is pinned are pieces, each
/// counted by the ranges that overlap it. (Bytes exactly, and not their pages: small allocations share pages, which CUDA
/// allows, and a copy of a neighbour that began in one registration and ended in another would fail.) Thread-safe.
class registered_ranges {
 public:
  static registered_ranges& all();

  /// As memory_resource::register_host, for the current device.
  bool add(void* address, u64 bytes, bool writable);
  void remove(void* address, u64 bytes) noexcept;

 private:
  struct piece {
    u64 begin, end;
    u32 users;
  };

  /// Calls use(piece) for those that overlap [begin, end).
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
