// Shortest paths from one vertex, near-far (Davidson, Baxter, Garland, Owens, IPDPS 2014): vertices whose distance is below a
// threshold are relaxed until there are none, those beyond wait in a pile for the next threshold.
//
// `place` says where a vertex waits, and who changes it does so by an exchange that releases what was stored before and
// acquires what others stored. Who lowers a distance exchanges after it; who takes a vertex from the frontier exchanges before
// it loads the distance. So either the taker sees the lower distance, or the one who lowered it finds the vertex taken and puts
// it into the next frontier: no distance is left without a visit. A vertex enters a frontier when its place becomes `near`, and
// the pile when it becomes `far` from `nowhere`, so each list has it once and [vertices] is enough: a vertex that was taken
// lies below the threshold and does not come back to the pile before the threshold rises, when the pile is read anew.
#pragma once

#include "apps/analytics/edge_lists.hpp"

#include <type_traits>

namespace penstock::apps {

enum class waits : u32 { nowhere, near, far };

/// int32 weights make 64-bit distances, float32 ones floats.
template <class Weight>
using distance_of = std::conditional_t<std::is_floating_point_v<Weight>, float, u64>;

template <class Id, class Distance>
struct path_data {
  Distance* distance = nullptr;  ///< [vertices]
  u32* place = nullptr;          ///< [vertices] a `waits` each
  Id const* frontier = nullptr;
  Id* next = nullptr;
  Id* pile = nullptr;
  u64* next_count = nullptr;
  u64* pile_count = nullptr;
  u64* bad_weight = nullptr;  ///< 1 + position of a weight that is negative or no number
};

template <class Id, class Weight>
struct relax_edges {
  using distance = distance_of<Weight>;

  edge_lists<Id> lists;
  array_view<Weight> weights;
  path_data<Id, distance> data;
  distance threshold = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    array_ref<Weight> lengths(weights);
    lists.for_each_vertex(
        g, range, [this](u64 k) { return static_cast<u64>(data.frontier[k]); },
        [&](u64 v, u64 begin, u64 end, array_ref<Id>& neighbours) {
          distance here = take(g, v);
          lists.walk(g, begin, end, neighbours, [&](bool mine, u64 position, u64 to) {
            const Weight length = lengths.read(g, mine, mine ? position : begin);
            if (!mine) return;
            if (!(length >= 0)) {
              device_ref<u64>(*data.bad_weight).store(position + 1, relaxed);
            } else if (lower(to, here + static_cast<distance>(length))) {
              put(to, here + static_cast<distance>(length));
            }
          });
        });
  }

 private:
  template <thread_group G>
  PENSTOCK_FN distance take(G const& g, u64 v) const {
    u64 bits = 0;
    if (is_leader(g)) {
      device_ref<u32>(data.place[v]).exchange(static_cast<u32>(waits::nowhere), acq_rel);
      const distance here = device_ref<distance>(data.distance[v]).load(relaxed);
      if constexpr (sizeof(distance) == 8) {
        bits = here;
      } else {
        bits = std::bit_cast<u32>(here);
      }
    }
    bits = from_leader(g, bits);
    if constexpr (sizeof(distance) == 8) return bits;
    return std::bit_cast<distance>(static_cast<std::conditional_t<sizeof(distance) == 8, u64, u32>>(bits));
  }

  PENSTOCK_FN bool lower(u64 v, distance to) const {
    device_ref<distance> at(data.distance[v]);
    distance seen = at.load(relaxed);
    while (to < seen) {
      if (at.compare_exchange_weak(seen, to, relaxed, relaxed)) return true;
    }
    return false;
  }

  PENSTOCK_FN void put(u64 v, distance at) const {
    device_ref<u32> place(data.place[v]);
    if (at < threshold) {
      const u32 was = place.exchange(static_cast<u32>(waits::near), acq_rel);
      if (was == static_cast<u32>(waits::near)) return;
      data.next[device_ref<u64>(*data.next_count).fetch_add(1, relaxed)] = static_cast<Id>(v);
    } else {
      u32 was = static_cast<u32>(waits::nowhere);
      if (!place.compare_exchange_strong(was, static_cast<u32>(waits::far), acq_rel, relaxed)) return;
      data.pile[device_ref<u64>(*data.pile_count).fetch_add(1, relaxed)] = static_cast<Id>(v);
    }
  }
};

/// Reads a pile after the threshold rose: what lies below it now is the next frontier, the rest is kept, and what has been
/// taken as near meanwhile is dropped.
template <class Id, class Distance>
struct read_pile {
  path_data<Id, Distance> data;
  Id const* old_pile = nullptr;
  u64 count = 0;
  Distance threshold = 0;
  Distance* least = nullptr;  ///< of what is kept

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices(g, range, count, [&](u64 k) {
      const u64 v = static_cast<u64>(old_pile[k]);
      if (data.place[v] != static_cast<u32>(waits::far)) return;
      const Distance at = data.distance[v];
      if (at < threshold) {
        data.place[v] = static_cast<u32>(waits::near);
        data.next[device_ref<u64>(*data.next_count).fetch_add(1, relaxed)] = static_cast<Id>(v);
        return;
      }
      data.pile[device_ref<u64>(*data.pile_count).fetch_add(1, relaxed)] = static_cast<Id>(v);
      device_ref<Distance> lowest(*least);
      Distance seen = lowest.load(relaxed);
      while (at < seen && !lowest.compare_exchange_weak(seen, at, relaxed, relaxed)) {}
    });
  }
};

}  // namespace penstock::apps
