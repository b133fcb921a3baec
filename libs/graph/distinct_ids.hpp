// The distinct ids among many, ascending: they number vertices whose ids have gaps.
#pragma once

#include "penstock/core/config.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::graph {

/// Thread-safe. Holds each distinct id a few times at most.
class distinct_ids {
 public:
  /// Takes the ids of one block, in any order.
  void add(std::vector<u64> ids) {
    sort_unique(ids);
    std::lock_guard const lock(mutex_);
    recent_.insert(recent_.end(), ids.begin(), ids.end());
    // As many as there are already at a time, so that each id is merged a few times, not once for each block.
    if (recent_.size() > all_.size() + least_recent) merge();
  }

  std::vector<u64> take() {
    merge();
    return std::move(all_);
  }

 private:
  static constexpr std::size_t least_recent = 1 << 16;

  static void sort_unique(std::vector<u64>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }

  void merge() {
    sort_unique(recent_);
    std::vector<u64> both;
    both.reserve(all_.size() + recent_.size());
    std::set_union(all_.begin(), all_.end(), recent_.begin(), recent_.end(), std::back_inserter(both));
    all_ = std::move(both);
    recent_.clear();
  }

  std::mutex mutex_;
  std::vector<u64> all_, recent_;
};

}  // namespace penstock::graph
