// What kernels count while they walk over edges.
#pragma once

#include "penstock/executor/executor.hpp"
#include "penstock/executor/memory.hpp"

#include <array>
#include <vector>

namespace penstock::analytics {

/// Edges looked at; sectors of edges read in place; an edge and a weight that cannot be; vertices found; tiles listed on either
/// side; edges of a list.
enum class walk_count : u32 { traversed, sectors, bad_edge, bad_weight, found, tile_count, next_tile_count, list_edges };
inline constexpr u32 walk_count_kinds = 8;

/// The words in the executor's local memory, and what was read of them last. For one thread.
class walk_counts {
 public:
  explicit walk_counts(executor& on) : words_(on.memory(), memory_kind::local, walk_count_kinds) { clear(); }

  u64* at(walk_count which) const { return words_.data() + static_cast<u32>(which); }
  u64 operator[](walk_count which) const { return last_[static_cast<u32>(which)]; }
  void read() { words_.read(last_); }
  void clear() {
    last_ = {};
    words_.write(std::vector<u64>(walk_count_kinds, 0));
  }

 private:
  buffer<u64> words_;
  std::array<u64, walk_count_kinds> last_{};
};

}  // namespace penstock::analytics
