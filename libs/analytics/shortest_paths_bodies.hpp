// Shortest paths from one vertex, near-far (Davidson, Baxter, Garland, Owens, IPDPS 2014): vertices whose distance is below a
// threshold are relaxed until there are none, those beyond wait in a pile for the next threshold.
//
// `place` says where a vertex waits, and who changes it does so by an exchange that releases what was stored before and
// acquires what others stored. Before the edges of a frontier are relaxed, a kernel of its own takes its vertices: their place
// becomes `taken` in this round. Who lowers a distance looks at the place after it. Found `near`, the vertex is in the next
// frontier already, and will be taken, and its distance loaded, by later kernels. Found anything else, it is put into the next
// frontier or onto the pile. So no distance is left without a visit, however many groups relax the edges of one vertex, and
// whichever of its distances each of them saw. A vertex enters a frontier when its place becomes `near`, and the pile when it
// becomes `far`, so each list has it once and [vertices] is enough: a vertex that was taken lies below the threshold and does
// not come back to the pile before the threshold rises, when the pile is read anew.
#pragma once

#include "libs/analytics/tile_bodies.hpp"

#include <limits>
#include <type_traits>

namespace penstock::analytics {

/// And from `taken` on: nowhere, taken in round `place - taken`.
enum class waits : u32 { near, far, taken };

PENSTOCK_FN inline u32 place_of(waits where, u32 round = 0) { return static_cast<u32>(where) + round; }

/// Sums of int32 weights are 64-bit integers, sums of float32 weights doubles: no path is as long as the largest double, and a
/// sum is rounded as Dijkstra's algorithm in double rounds it, so that the distances are equal to its.
template <class Weight>
using distance_of = std::conditional_t<std::is_floating_point_v<Weight>, double, u64>;

/// Where there is no path.
template <class Distance>
inline constexpr Distance no_path =
    std::is_floating_point_v<Distance> ? std::numeric_limits<Distance>::infinity() : std::numeric_limits<Distance>::max();

template <class Id, class Distance>
struct path_data {
  Distance* distance = nullptr;  ///< [vertices]
  u32* place = nullptr;          ///< [vertices] a `waits` each
  Id const* frontier = nullptr;
  next_frontier<Id> next{};
  growing_list<Id> pile{};
  u64* bad_weight = nullptr;  ///< not 0: a weight was negative or no number, which the check before the run has excluded
};

/// Takes the vertices of a frontier.
template <class Id, class Distance>
struct take_frontier {
  path_data<Id, Distance> data;
  u64 count = 0;
  u32 round = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_vertices(g, range, count, [&](u64 k) {
      device_ref<u32>(data.place[data.frontier[k]]).exchange(place_of(waits::taken, round), acq_rel);
    });
  }
};

/// `ListsTiles`: those that the next round touches, too.
template <class Id, class Weight, bool ListsTiles = false>
struct relax_edges {
  using distance = distance_of<Weight>;

  array_view<Weight> weights;
  path_data<Id, distance> data;
  distance threshold = 0;
  u32 round = 0;
  u64 vertices = 0;

  static constexpr bool wants_all = false, stops = false, reads_beside = true;
  PENSTOCK_FN bool wants(u64 v) const { return device_ref<u32>(data.place[v]).load(relaxed) == place_of(waits::taken, round); }

  template <thread_group G>
  struct visit {
    using beside = Weight;

    relax_edges const& visitor;
    array_ref<Weight> lengths;
    u64 vertex = ~0ull;
    distance here = 0;                   ///< of that vertex
    distance seen[most_in_flight] = {};  ///< of those that the edges of a run lead to

    PENSTOCK_FN visit(relax_edges const& of, G const&) : visitor(of), lengths(of.weights) {}
    PENSTOCK_FN array_ref<Weight>& beside_ref() { return lengths; }
    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64 position, u64 to) {
      const Weight length = lengths.read(g, mine, mine ? position : 0);
      relax(g, mine, v, to, length, mine ? visitor.distance_to(to) : 0);
    }
    // Distances are far apart: all of a run are on their way together.
    PENSTOCK_FN void look_ahead(bool reads, u64 const (&to)[most_in_flight]) {
      PENSTOCK_UNROLL
      for (u32 k = 0; k < most_in_flight; ++k) seen[k] = reads && to[k] < visitor.vertices ? visitor.distance_to(to[k]) : 0;
    }
    PENSTOCK_FN void edge_of_run(G const& g, bool mine, u64 v, u64, u64 to, Weight length, u32 k) {
      relax(g, mine, v, to, length, seen[k]);
    }
    PENSTOCK_FN void finish(G const&) {}

   private:
    PENSTOCK_FN void relax(G const& g, bool mine, u64 v, u64 to, Weight length, distance before) {
      if (mine && !(length >= 0)) device_ref<u64>(*visitor.data.bad_weight).store(1, relaxed);
      const bool good = mine && length >= 0;
      if (mine && v != vertex) {
        vertex = v;
        here = device_ref<distance>(visitor.data.distance[v]).load(relaxed);
      }
      const distance there = here + static_cast<distance>(good ? length : Weight{0});
      const bool lowered = good && visitor.lower(to, there, before);
      const bool near = lowered && there < visitor.threshold;
      visitor.data.next.template append<ListsTiles>(g, near && visitor.becomes_near(to), to);
      visitor.data.pile.append(g, lowered && !near && visitor.becomes_far(to), to);
    }
  };

 private:
  PENSTOCK_FN distance distance_to(u64 v) const { return device_ref<distance>(data.distance[v]).load(relaxed); }

  // `seen`: what it was a moment ago. It has only become less since.
  PENSTOCK_FN bool lower(u64 v, distance to, distance seen) const {
    device_ref<distance> at(data.distance[v]);
    while (to < seen) {
      if (at.compare_exchange_weak(seen, to, relaxed, relaxed)) return true;
    }
    return false;
  }

  PENSTOCK_FN bool becomes_near(u64 v) const {
    return device_ref<u32>(data.place[v]).exchange(place_of(waits::near), acq_rel) != place_of(waits::near);
  }

  PENSTOCK_FN bool becomes_far(u64 v) const {
    device_ref<u32> place(data.place[v]);
    u32 was = place.load(relaxed);
    while (was >= place_of(waits::taken)) {
      if (place.compare_exchange_weak(was, place_of(waits::far), acq_rel, relaxed)) return true;
    }
    return false;
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
    for_vertices_together(g, range, count, [&](bool mine, u64 k) {
      const u64 v = static_cast<u64>(old_pile[k]);
      const bool waiting = mine && data.place[v] == place_of(waits::far);
      const Distance at = waiting ? data.distance[v] : Distance{};
      const bool near = waiting && at < threshold;
      if (near) data.place[v] = place_of(waits::near);
      data.next.template append<true>(g, near, v);
      data.pile.append(g, waiting && !near, v);
      if (!waiting || near) return;
      device_ref<Distance> lowest(*least);
      Distance seen = lowest.load(relaxed);
      while (at < seen && !lowest.compare_exchange_weak(seen, at, relaxed, relaxed)) {}
    });
  }
};

/// When the distances are final: an edge whose length is the difference of its ends' distances is the last of a shortest path.
/// What it leads to gets the vertex that it leaves for a predecessor, by compare-and-swap.
///
/// First edges whose ends differ in distance are looked at: chains of such predecessors get nearer with each step, so they end
/// at the source. What has none then is reached by edges alone that add nothing (weights of 0, or lost in a double's last bit).
/// There a vertex links others only once it has a predecessor itself, so that no cycle of them forms.
template <class Id, class Weight>
struct link_paths {
  using distance = distance_of<Weight>;

  array_view<Weight> weights;
  distance const* distances = nullptr;  ///< [vertices]
  Id* predecessors = nullptr;           ///< [vertices] -1: none
  growing_list<Id> linked{};            ///< [vertices] those that got one, of the second kind
  bool level = false;                   ///< whether edges are looked at that add nothing, or those that add something

  static constexpr bool wants_all = false, stops = false, reads_beside = true;
  PENSTOCK_FN bool is_linked(u64 v) const { return device_ref<Id>(predecessors[v]).load(relaxed) != -1; }
  PENSTOCK_FN bool wants(u64 v) const { return distances[v] != no_path<distance> && (!level || is_linked(v)); }

  template <thread_group G>
  struct visit {
    using beside = Weight;

    link_paths const& visitor;
    array_ref<Weight> lengths;

    PENSTOCK_FN visit(link_paths const& of, G const&) : visitor(of), lengths(of.weights) {}
    PENSTOCK_FN array_ref<Weight>& beside_ref() { return lengths; }
    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64 position, u64 to) {
      link(g, mine, v, to, lengths.read(g, mine, mine ? position : 0));
    }
    PENSTOCK_FN void look_ahead(bool, u64 const (&)[most_in_flight]) {}
    PENSTOCK_FN void edge_of_run(G const& g, bool mine, u64 v, u64, u64 to, Weight length, u32) {
      link(g, mine, v, to, length);
    }
    PENSTOCK_FN void finish(G const&) {}

   private:
    PENSTOCK_FN void link(G const& g, bool mine, u64 v, u64 to, Weight length) {
      const bool won = mine && visitor.is_last(v, to, length) && visitor.link(v, to);
      if (visitor.level) visitor.linked.append(g, won, to);
    }
  };

 private:
  PENSTOCK_FN bool is_last(u64 v, u64 to, Weight length) const {
    const distance here = distances[v], there = distances[to];
    return here + static_cast<distance>(length) == there && (here == there) == level;
  }

  /// Whether `to` had no predecessor before. Of the first kind the smallest one stays, so that a search has the same paths each
  /// time; of the second kind the first one: a later one may have been linked by way of `to`.
  PENSTOCK_FN bool link(u64 v, u64 to) const {
    const device_ref<Id> predecessor(predecessors[to]);
    const Id mine = static_cast<Id>(v);
    Id seen = predecessor.load(relaxed);
    while (seen == -1 || (!level && mine < seen)) {
      if (predecessor.compare_exchange_strong(seen, mine, relaxed, relaxed)) return seen == -1;
    }
    return false;
  }
};

/// Counts the vertices that have a distance and no predecessor.
template <class Id, class Distance>
struct count_unlinked {
  Distance const* distances = nullptr;
  Id const* predecessors = nullptr;
  u64* sum = nullptr;
  u64 vertices = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double mine = 0;
    for_vertices(g, range, vertices,
                 [&](u64 v) { mine += distances[v] != no_path<Distance> && predecessors[v] == -1 ? 1 : 0; });
    const double all = sum_over(g, mine);
    if (is_leader(g) && all != 0) device_ref<u64>(*sum).fetch_add(static_cast<u64>(all), relaxed);
  }
};

}  // namespace penstock::analytics
