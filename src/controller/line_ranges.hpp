// Which parts of a line space versions of files have. A part that a version had is used again when no line of it is in the
// cache: the group whose open finds too little room is asked to forget them.
#pragma once

#include "penstock/core/config.hpp"

#include <list>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace penstock::controllers {

/// Not thread-safe.
class line_ranges {
 public:
  struct extent {
    u64 first = 0, count = 0;  ///< granules
  };
  struct reclaim {
    u64 ticket = 0;
    std::vector<extent> extents;  ///< empty: nothing can be forgotten now
  };

  explicit line_ranges(u64 granules) : granules_(granules) { give({0, granules}); }

  u64 granules() const { return granules_; }
  /// In turn, so that what was given back lies idle for long. REQUIRES: count != 0.
  std::optional<extent> take(u64 count);
  /// The cache has no line of it. REQUIRES: count != 0.
  void give(extent free);
  /// The cache may have lines of it.
  void retire(extent old);
  u64 retired() const { return retired_count_; }

  /// Those retired first, of `count` granules or more together; `max` extents at most.
  reclaim begin_reclaim(u64 count, u64 max);
  /// `forgotten`: the cache has no line of them any more.
  void end_reclaim(u64 ticket, bool forgotten);
  bool reclaims() const { return !reclaims_.empty(); }

 private:
  std::optional<extent> take_from(std::map<u64, u64>::iterator begin, std::map<u64, u64>::iterator end, u64 count);

  u64 granules_;
  std::map<u64, u64> free_;  ///< first to count; neighbours are one
  u64 next_ = 0;             ///< where the next extent is looked for
  std::list<extent> retired_;
  u64 retired_count_ = 0;
  std::map<u64, std::vector<extent>> reclaims_;  ///< by ticket
  u64 tickets_ = 0;
};

}  // namespace penstock::controllers
