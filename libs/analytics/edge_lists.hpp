// The lists of neighbours that all algorithms walk, and what their kernels share.
#pragma once

#include "penstock/array/array_ref.hpp"
#include "penstock/executor/launch.hpp"

#include <concepts>

namespace penstock::analytics {

/// Lanes of a group on CUDA.
inline constexpr u32 list_group_width = 32;
/// Bytes that a GPU asks host memory for at the least.
inline constexpr u32 sector_bytes = 32;

/// A graph's edges, wherever they are, and where to tell what was met in them.
template <class Id>
struct edge_lists {
  array_view<Id> edges;
  u64 const* offsets = nullptr;  ///< [lists + 1], in the executor's local memory
  u64* traversed = nullptr;      ///< edges looked at
  u64* sectors = nullptr;        ///< of 32 bytes, that lanes asked for together, of edges that are read in place
  u64* bad_edge = nullptr;       ///< 1 + position of an edge that leads out of the graph, 0 if none was met
  u64 vertices = 0;
  u64 lists = 0;           ///< as many, one for each, where not only some were taken
  bool asks_ahead = true;  ///< for lines of a cache; in vain where whoever misses a line copies it
};

/// Edges in flight for each lane of a walk over lists; and of a walk over tiles: so many that follow each other, and as many
/// such runs.
inline constexpr u32 most_in_flight = 4, runs_in_flight = 2;

/// The type of what a visitor reads beside the edges.
template <class Visitor, class G, bool Reads = Visitor::reads_beside>
struct beside_of {
  using type = u8;
};
template <class Visitor, class G>
struct beside_of<Visitor, G, true> {
  using type = typename Visitor::template visit<G>::beside;
};

/// What one group does with edges: it reads them, and hands them to a visitor.
///
/// A visitor says what an algorithm does with an edge. It has
///   bool wants(u64 v) const: whether the edges of v are to be looked at;
///   static constexpr bool wants_all, stops: all are; a vertex may be done before its list is (then `wants` turns false);
///   static constexpr bool reads_beside: it reads another array at the positions of edges, too;
///   static constexpr bool in_place, or none: no cache is before the edges that it is for;
///   template <thread_group G> struct visit: made once for each group, from the visitor and the group; it has
///     void edge(G const&, bool mine, u64 v, u64 position, u64 to): collective, each lane with an edge from v to `to` of its
///     own, or none; and void finish(G const&), collective: there are no more.
/// The visits of one that reads beside have the type of what lies there, `beside`, and a reference to it, `beside_ref()`. Of
/// edges that are read in runs, together with what lies beside, they are told by two functions in place of `edge`:
///     void look_ahead(bool mine, u64 const (&to)[most_in_flight]): the ends of a lane's run, before its first edge;
///     void edge_of_run(G const&, bool mine, u64 v, u64 position, u64 to, beside value, u32 k): edge k of it, and its value.
template <class Id, class Visitor, thread_group G>
class edge_reader_of {
 public:
  PENSTOCK_FN edge_reader_of(G const& g, edge_lists<Id> const& lists, Visitor const& visitor)
      : g_(g), lists_(lists), visitor_(visitor), neighbours_(lists.edges), visit_(visitor, g) {}

  /// An edge for each lane that has one. `Count` of them, which are in flight together. Collective.
  template <u32 Count>
  PENSTOCK_FN void read(bool const (&mine)[Count], u64 const (&from)[Count], u64 const (&position)[Count]) {
    Id to[Count];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < Count; ++k) to[k] = neighbours_.read(g_, mine[k], mine[k] ? position[k] : 0);
    PENSTOCK_UNROLL
    for (u32 k = 0; k < Count; ++k) {
      const auto reading = g_.ballot(mine[k]);
      edges_ += count(reading);
      count_sectors(reading, mine[k], position[k]);
      visit_.edge(g_, check(mine[k], position[k], to[k]), from[k], position[k], static_cast<u64>(to[k]));
    }
  }

  /// Runs of edges that follow each other for each lane that wants some, from `position` on and `stride` behind that, 16 bytes
  /// at once: they are mostly of one vertex, which need not be looked for again. `wants(position, k, v)`: whether an edge,
  /// number k of its run, is to be looked at, and its vertex. Collective. `InPlace`: as all of the graph lies. REQUIRES:
  /// `position` and `stride` multiples of most_in_flight.
  template <bool InPlace, u32 Runs, class Wants>
  PENSTOCK_FN void read_runs(bool const (&some)[Runs], u64 position, u64 stride, Wants const& wants) {
    Id to[Runs][most_in_flight];
    typename beside_of<Visitor, G>::type beside[Runs][most_in_flight];
    if constexpr (Visitor::reads_beside) {
      penstock::read_runs<InPlace>(g_, some, position, stride, runs_of(neighbours_, to), runs_of(visit_.beside_ref(), beside));
    } else {
      penstock::read_runs<InPlace>(g_, some, position, stride, runs_of(neighbours_, to));
    }
    // One copy of what is done with an edge for all runs.
    PENSTOCK_UNROLL_BY(1)
    for (u32 r = 0; r < Runs; ++r) {
      const u64 first = position + r * stride;
      const bool reads = pick(some, r);
      const auto reading = g_.ballot(reads);
      if (!any(reading)) continue;
      count_sectors(reading, reads, first);
      if constexpr (Visitor::reads_beside) {
        u64 ahead[most_in_flight];
        PENSTOCK_UNROLL
        for (u32 k = 0; k < most_in_flight; ++k) ahead[k] = static_cast<u64>(pick(to, r, k));
        visit_.look_ahead(reads, ahead);
      }
      PENSTOCK_UNROLL
      for (u32 k = 0; k < most_in_flight; ++k) {
        u64 v = 0;
        const bool mine = wants(first + k, k, v) && reads;
        const Id end = pick(to, r, k);
        edges_ += count(g_.ballot(mine));
        const bool good = check(mine, first + k, end);
        if constexpr (Visitor::reads_beside) {
          visit_.edge_of_run(g_, good, v, first + k, static_cast<u64>(end), pick(beside, r, k), k);
        } else {
          visit_.edge(g_, good, v, first + k, static_cast<u64>(end));
        }
      }
    }
  }

  /// All edges of v that are read in place, by a thread that has nobody to share them with.
  PENSTOCK_FN void read_alone(u64 v, u64 begin, u64 end)
    requires std::same_as<G, lone_thread>
  {
    Id const* const ends = lists_.edges.resident();
    u64 position = begin;
    for (; position < end; ++position) {
      const u64 to = static_cast<u64>(ends[position]);
      const bool good = to < lists_.vertices;
      if (!good) device_ref<u64>(*lists_.bad_edge).store(position + 1, relaxed);
      visit_.edge(g_, good, v, position, to);
      if constexpr (Visitor::stops) {
        if (!visitor_.wants(v)) {
          ++position;
          break;
        }
      }
    }
    edges_ += position - begin;
  }

  PENSTOCK_FN void finish() {
    visit_.finish(g_);
    if (!is_leader(g_)) return;
    if (edges_ != 0) device_ref<u64>(*lists_.traversed).fetch_add(edges_, relaxed);
    if (sectors_ != 0) device_ref<u64>(*lists_.sectors).fetch_add(sectors_, relaxed);
  }

 private:
  // What a run has: its number as an index would put all of them into memory.
  template <class T, u32 Runs>
  PENSTOCK_FN static T pick(T const (&each)[Runs], u32 r) {
    T found = each[0];
    PENSTOCK_UNROLL
    for (u32 other = 1; other < Runs; ++other) found = r == other ? each[other] : found;
    return found;
  }
  template <class T, u32 Runs>
  PENSTOCK_FN static T pick(T const (&each)[Runs][most_in_flight], u32 r, u32 k) {
    T found = each[0][k];
    PENSTOCK_UNROLL
    for (u32 other = 1; other < Runs; ++other) found = r == other ? each[other][k] : found;
    return found;
  }

  PENSTOCK_FN bool check(bool mine, u64 position, Id to) const {
    const bool good = static_cast<u64>(to) < lists_.vertices;
    if (mine && !good) device_ref<u64>(*lists_.bad_edge).store(position + 1, relaxed);
    return mine && good;
  }

  // Each lane that reads begins with an edge of its own, at `position`, and reads on to where the next one does, or less.
  template <class Mask>
  PENSTOCK_FN void count_sectors(Mask const& reading, bool mine, u64 position) {
    if (!lists_.edges.is_resident() || size(g_) == 1) return;
    const bool begins = position * sizeof(Id) % sector_bytes == 0;
    const bool follows = g_.rank() != lowest(g_.members()) && contains(reading, g_.rank() - 1);
    sectors_ += count(g_.ballot(mine && (begins || !follows)));
  }

  G g_;
  edge_lists<Id> const& lists_;
  Visitor const& visitor_;
  array_ref<Id> neighbours_;
  typename Visitor::template visit<G> visit_;
  u64 edges_ = 0, sectors_ = 0;
};

/// A list that all groups append to.
template <class Id>
struct growing_list {
  Id* items = nullptr;
  u64* length = nullptr;  ///< counts on from list to list, so that nobody has to clear it in between
  u64 base = 0;           ///< what it was when this one was empty

  /// Appends the values of the lanes that have one. Collective.
  template <thread_group G>
  PENSTOCK_FN void append(G const& g, bool mine, u64 value) const {
    const auto having = g.ballot(mine);
    const u64 first = take_places(g, penstock::count(having));
    if (mine) items[first + count_below(having, g.rank())] = static_cast<Id>(value);
  }

  /// Places for a group; gives the first. Collective.
  template <thread_group G>
  PENSTOCK_FN u64 take_places(G const& g, u32 places) const {
    if (places == 0) return 0;
    u64 first = 0;
    if (is_leader(g)) first = device_ref<u64>(*length).fetch_add(places, relaxed);
    return from_leader(g, first) - base;
  }
  PENSTOCK_FN u64 count() const { return device_ref<u64>(*length).load(relaxed) - base; }
};

/// The sum of what the lanes of a group have. REQUIRES: as many lanes as a launch has, a power of two. Collective.
template <thread_group G>
PENSTOCK_FN double sum_over(G const& g, double mine) {
  const u32 lanes = size(g), index = index_in(g);
  for (u32 step = 1; step < lanes; step *= 2) {
    const u64 other = g.shfl(std::bit_cast<u64>(mine), nth(g.members(), (index + step) % lanes));
    mine += std::bit_cast<double>(other);
  }
  return mine;
}

/// Vertices that an item has where a launch looks at vertices alone.
inline constexpr u64 vertices_at_once = 64;

/// Calls use(v) for the vertices below `vertices` of a group's items, `vertices_at_once` each; every lane has others.
template <thread_group G, class Use>
PENSTOCK_FN void for_vertices(G const& g, grid_range range, u64 vertices, Use const& use) {
  for (u64 item = range.first; item < range.last; item += range.step) {
    const u64 end = (item + 1) * vertices_at_once < vertices ? (item + 1) * vertices_at_once : vertices;
    for (u64 v = item * vertices_at_once + index_in(g); v < end; v += size(g)) use(v);
  }
}

/// The same with use(mine, v) for all lanes together, so that `use` may be collective.
template <thread_group G, class Use>
PENSTOCK_FN void for_vertices_together(G const& g, grid_range range, u64 vertices, Use const& use) {
  for (u64 item = range.first; item < range.last; item += range.step) {
    for (u64 k = 0; k < vertices_at_once; k += size(g)) {
      const u64 v = item * vertices_at_once + k + index_in(g);
      const bool mine = k + index_in(g) < vertices_at_once && v < vertices;
      use(mine, mine ? v : 0);
    }
  }
}

}  // namespace penstock::analytics
