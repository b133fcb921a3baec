// Ranges of addresses, none of which touch: what is free of some memory, or what there is of it.
#pragma once

#include "penstock/core/config.hpp"

#include <map>
#include <optional>

namespace penstock {

/// Not thread-safe.
class address_ranges {
 public:
  /// Adds a range. REQUIRES: no part of it is there.
  void add(u64 address, u64 bytes);

  /// Takes so many bytes away: the first that lie together.
  std::optional<u64> take(u64 bytes);

  /// Takes a range away that is one, or part of one. False where it is not there as a whole.
  bool take_at(u64 address, u64 bytes);

  /// Whether it is there as a whole.
  bool holds(u64 address, u64 bytes) const;

  u64 bytes() const;

 private:
  std::map<u64, u64> ranges_;  ///< bytes by address
};

}  // namespace penstock
