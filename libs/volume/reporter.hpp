// Progress of long work, told now and then.
#pragma once

#include "libs/volume/volume.hpp"

#include "penstock/core/clock.hpp"

namespace penstock::volumes {

/// Tells at most every 50 ms, and at the end.
class reporter {
 public:
  reporter(progress_fn const& to, std::string what, u64 total) : to_(to), what_(std::move(what)), total_(total) {}

  void add(u64 bytes) {
    done_ += bytes;
    if (done_ == total_ || now_ns() - last_ >= interval_ns) now();
  }
  void now() {
    last_ = now_ns();
    if (to_) to_(what_, done_, total_);
  }

 private:
  static constexpr u64 interval_ns = 50'000'000;

  progress_fn const& to_;
  std::string what_;
  u64 total_, done_ = 0, last_ = 0;
};

}  // namespace penstock::volumes
