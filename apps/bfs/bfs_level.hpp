// One level of a level-synchronous breadth-first search with a frontier.
#pragma once

#include "apps/analytics/edge_lists.hpp"

namespace penstock::apps {

/// What the kernels share; all in the executor's local memory.
template <class Id>
struct bfs_data {
  Id* parents = nullptr;         ///< [vertices]; -1: not reached. Set once, by compare-and-swap
  Id const* frontier = nullptr;  ///< [vertices] of this level
  Id* next = nullptr;            ///< [vertices] of the next
  u64* next_count = nullptr;
};

template <class Id>
struct bfs_level {
  edge_lists<Id> lists;
  bfs_data<Id> data;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    lists.for_each_vertex(
        g, range, [this](u64 k) { return static_cast<u64>(data.frontier[k]); },
        [&](u64 v, u64 begin, u64 end, array_ref<Id>& neighbours) {
          lists.walk(g, begin, end, neighbours, [&](bool mine, u64, u64 to) {
            if (mine) visit(v, to);
          });
        });
  }

 private:
  PENSTOCK_FN void visit(u64 v, u64 to) const {
    device_ref<Id> parent(data.parents[to]);
    Id unset = -1;
    if (parent.load(relaxed) != unset || !parent.compare_exchange_strong(unset, static_cast<Id>(v), relaxed, relaxed)) return;
    data.next[device_ref<u64>(*data.next_count).fetch_add(1, relaxed)] = static_cast<Id>(to);
  }
};

}  // namespace penstock::apps
