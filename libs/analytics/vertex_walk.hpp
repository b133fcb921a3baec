// Edges handed to groups by vertices.
#pragma once

#include "libs/analytics/edge_lists.hpp"

namespace penstock::analytics {

/// A group per vertex, its lanes over the vertex's edges. Which vertices, in which order, and how they are read:
///
///   merged          all vertices; the lanes begin where the list does                  (EMOGI; dissertation of Min, 2.3)
///   merged_aligned  the lanes begin on a line of 32 of them                            (the same, Listing 2.2)
///   transposed      neighbouring groups have vertices `stride` apart                   (BaM dissertation 6.3.2)
///   coarsened       a group has `run_vertices` that follow each other                  (BaM dissertation 6.3.3)
///   frontier        those in a list, sorted; their lines are asked for ahead
///
/// In groups of one lane it is `thread`: each thread has a vertex, and its list to itself.
template <class Id, class Visitor>
struct vertex_walk {
  edge_lists<Id> lists;
  Visitor visitor;
  Id const* chosen = nullptr;  ///< [count] vertices; nullptr: all, of which `wants` says which
  u64 count = 0;
  u64 pivot = 0, stride = 1;  ///< pivot 0: not transposed
  u32 run_vertices = 1;       ///< an item of a launch is a run of them
  u32 lines_ahead = 0;        ///< of a long list behind a cache, one window; 0: nothing is asked for ahead
  u32 in_flight = 1;          ///< edges for each lane
  bool aligned = true;

  u64 items() const { return ceil_div(count, run_vertices); }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    edge_reader_of<Id, Visitor, G> reader(g, lists, visitor);
    const bool ahead = lines_ahead != 0 && asks_ahead();
    if (ahead) look_ahead(g, range.first);
    for (u64 run = range.first; run < range.last; run += range.step) {
      if (ahead && run + range.step < range.last) look_ahead(g, run + range.step);
      const u64 first = run * run_vertices;
      const u64 last = first + run_vertices < count ? first + run_vertices : count;
      for (u64 at = first; at < last; ++at) {
        const u64 v = vertex(at);
        if (v < lists.lists && wanted(g, v)) walk(g, reader, v);
      }
    }
    reader.finish();
  }

 private:
  PENSTOCK_FN bool asks_ahead() const { return lists.asks_ahead && !lists.edges.is_resident(); }

  PENSTOCK_FN u64 vertex(u64 at) const {
    if (chosen != nullptr) return static_cast<u64>(chosen[at]);
    return pivot == 0 ? at : at / pivot + at % pivot * stride;
  }

  // One answer for the group: others may change what it goes by.
  template <thread_group G>
  PENSTOCK_FN bool wanted(G const& g, u64 v) const {
    if constexpr (Visitor::wants_all) {
      return true;
    } else {
      if (chosen != nullptr && !Visitor::stops) return true;
      return any(g.ballot(visitor.wants(v)));
    }
  }

  template <thread_group G, class Reader>
  PENSTOCK_FN void walk(G const& g, Reader& reader, u64 v) const {
    const u64 begin = lists.offsets[v], end = lists.offsets[v + 1];
    if constexpr (std::same_as<G, lone_thread>) {
      if (lists.edges.is_resident()) return reader.read_alone(v, begin, end);
    }
    const u32 width = size(g);
    const u64 per_line = lines_ahead == 0 || !asks_ahead() ? 0 : (1ull << lists.edges.reader().line_shift) / sizeof(Id);
    // A long list is asked for in windows of lines, the next one when half of the last is still to come.
    u64 asked = begin + per_line;
    for (u64 first = aligned ? begin - begin % width : begin; first < end;) {
      if (per_line != 0 && asked < end && first + lines_ahead * per_line / 2 >= asked) {
        ask(g, asked, end, per_line);
        asked += lines_ahead * per_line;
      }
      // A lone thread waits for one miss at a time, whatever is asked for.
      const bool several = !std::same_as<G, lone_thread> && in_flight == most_in_flight && first + width < end;
      if constexpr (!std::same_as<G, lone_thread>) {
        if (several) step<most_in_flight>(g, reader, v, first, begin, end);
      }
      if (!several) step<1>(g, reader, v, first, begin, end);
      first += several ? most_in_flight * width : width;
      if constexpr (Visitor::stops) {
        if (!wanted(g, v)) return;
      }
    }
  }

  template <u32 Count, thread_group G, class Reader>
  PENSTOCK_FN void step(G const& g, Reader& reader, u64 v, u64 first, u64 begin, u64 end) const {
    bool mine[Count];
    u64 from[Count], position[Count];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < Count; ++k) {
      from[k] = v;
      position[k] = first + k * size(g) + index_in(g);
      mine[k] = position[k] >= begin && position[k] < end;
    }
    reader.read(mine, from, position);
  }

  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, u64 from, u64 end, u64 per_line) const {
    for (u64 k = 0; k < lines_ahead; k += size(g)) {
      const u64 line = k + index_in(g);
      const u64 position = from + line * per_line;
      const bool mine = line < lines_ahead && position < end;
      lists.edges.prefetch(g, mine, mine ? position : from);
    }
  }

  // Every lane asks for another vertex's first line.
  template <thread_group G>
  PENSTOCK_FN void look_ahead(G const& g, u64 run) const {
    for (u64 k = 0; k < run_vertices; k += size(g)) {
      const u64 at = run * run_vertices + k + index_in(g);
      const bool mine = k + index_in(g) < run_vertices && at < count;
      const u64 v = mine ? vertex(at) : 0;
      const u64 begin = lists.offsets[v];
      bool wants = mine && begin < lists.offsets[v + 1];
      if constexpr (!Visitor::wants_all) {
        if (chosen == nullptr) wants = wants && visitor.wants(v);
      }
      lists.edges.prefetch(g, wants, begin);
    }
  }
};

}  // namespace penstock::analytics
