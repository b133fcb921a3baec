// Edges handed to groups by tiles, whatever vertices they are of.
#pragma once

#include "libs/analytics/edge_lists.hpp"

namespace penstock::analytics {

/// A group per tile of edges, whatever vertices they are of: on-demand implicit tiling (BaM dissertation 6.3.4). A tile is read
/// once, and long lists are spread over many groups. The first vertex of a tile is looked up in a table, or searched for
/// (6.3.6). The visitor is told edges of vertices that it wants alone, and no tile that has none of them is read; of others
/// runs of 4 edges are, with what lies beside, where one of them is wanted.
template <class Id, class Visitor>
struct tile_walk {
  edge_lists<Id> lists;
  Visitor visitor;
  Id const* first_vertices = nullptr;  ///< [tiles]; nullptr: searched for
  growing_list<Id> chosen{};           ///< tiles; without items: all
  u32* seen = nullptr;                 ///< a bit for each tile, which is cleared when the tile has been walked; nullptr: none
  u64 count = 0;                       ///< of tiles, or a bound of those in the list
  u64 edges = 0;
  u32 tile_shift = 0;   ///< log2 of the edges in a tile
  u32 table_shift = 0;  ///< log2 of the entries of the table for each tile

  u64 items() const { return count; }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    edge_reader_of<Id, Visitor, G> reader(g, lists, visitor);
    const u64 listed = chosen.items != nullptr ? chosen.count() : range.last;
    const u64 last = listed < range.last ? listed : range.last;
    if (range.first < last) {
      tile next = find(g, range.first);
      for (u64 item = range.first; item < last; item += range.step) {
        const tile now = next;
        // The next tile is on its way while this one is read.
        if (item + range.step < last) next = find(g, item + range.step);
        if (now.wanted) walk(g, reader, now);
        // All bits of the word go: nobody sets any before this kernel has ended.
        if (seen != nullptr && is_leader(g)) device_ref<u32>(seen[(now.begin >> tile_shift) / 32]).store(0, relaxed);
      }
    }
    reader.finish();
  }

 private:
  struct tile {
    u64 begin = 0, end = 0;
    u64 first = 0, last = 0;  ///< vertices of its first edge and of the one behind it
    bool wanted = false;
  };

  template <thread_group G>
  PENSTOCK_FN tile find(G const& g, u64 item) const {
    const u64 number = chosen.items != nullptr ? static_cast<u64>(chosen.items[item]) : item;
    tile t;
    t.begin = number << tile_shift;
    t.end = t.begin + (1ull << tile_shift) < edges ? t.begin + (1ull << tile_shift) : edges;
    t.first = first_vertex(g, number);
    t.last = t.end < edges ? first_vertex(g, number + 1) : lists.lists - 1;
    t.wanted = has_wanted(g, t);
    if (t.wanted && lists.asks_ahead) lists.edges.ask_span(g, t.begin, t.end - t.begin);
    return t;
  }

  template <thread_group G>
  PENSTOCK_FN u64 first_vertex(G const& g, u64 number) const {
    if (first_vertices != nullptr) return static_cast<u64>(first_vertices[number << table_shift]);
    return search(g, number << tile_shift);
  }

  // The vertex that an edge is of; the lanes look at as many places at once.
  template <thread_group G>
  PENSTOCK_FN u64 search(G const& g, u64 position) const {
    u64 low = 0, high = lists.lists;  // offsets[low] <= position < offsets[high]
    while (high - low > 1) {
      const u64 step = ceil_div(high - low, size(g) + 1u);
      const u64 probe = low + step * (index_in(g) + 1);
      const u32 below = penstock::count(g.ballot(probe < high && lists.offsets[probe < high ? probe : low] <= position));
      low += step * below;
      high = low + step < high ? low + step : high;
    }
    return low;
  }

  template <thread_group G>
  PENSTOCK_FN bool has_wanted(G const& g, tile const& t) const {
    if constexpr (Visitor::wants_all) {
      return true;
    } else {
      if (chosen.items != nullptr) return true;  // by one of the vertices that it was chosen for
      for (u64 v = t.first; v <= t.last; v += size(g)) {
        const u64 mine = v + index_in(g);
        if (any(g.ballot(mine <= t.last && visitor.wants(mine) && has_edges_in(t, mine)))) return true;
      }
      return false;
    }
  }

  PENSTOCK_FN bool has_edges_in(tile const& t, u64 v) const {
    const u64 begin = lists.offsets[v], end = lists.offsets[v + 1];
    return begin < end && begin < t.end && end > t.begin;
  }

  template <thread_group G, class Reader>
  PENSTOCK_FN void walk(G const& g, Reader& reader, tile const& t) const {
    if constexpr (!requires { Visitor::in_place; }) {
      if (!lists.edges.is_resident()) return walk_behind_cache(g, reader, t);
    }
    if constexpr (std::same_as<G, lone_thread>) {
      walk_alone(reader, t);
    } else {
      walk_in_place(g, reader, t);
    }
  }

  // By vertices: nobody else reads some of a list.
  template <class Reader>
  PENSTOCK_FN void walk_alone(Reader& reader, tile const& t) const {
    for (u64 v = t.first; v <= t.last; ++v) {
      if (!has_edges_in(t, v)) continue;
      if constexpr (!Visitor::wants_all) {
        if (!visitor.wants(v)) continue;
      }
      const u64 begin = lists.offsets[v], end = lists.offsets[v + 1];
      reader.read_alone(v, begin < t.begin ? t.begin : begin, end < t.end ? end : t.end);
    }
  }

  // Each lane has edges that follow each other.
  template <thread_group G, class Reader>
  PENSTOCK_FN void walk_in_place(G const& g, Reader& reader, tile const& t) const {
    u64 v = t.first;
    for (u64 first = t.begin; first < t.end; first += most_in_flight * size(g)) {
      const u64 position = first + most_in_flight * index_in(g);
      bool mine[most_in_flight];
      u64 from[most_in_flight];
      bool some[1] = {};
      PENSTOCK_UNROLL
      for (u32 k = 0; k < most_in_flight; ++k) {
        take(t, position + k, k != 0 || size(g) == 1, v, mine[k], from[k]);
        some[0] = some[0] || mine[k];
      }
      reader.template read_runs<true>(some, position, 0, [&](u64, u32 k, u64& vertex) {
        vertex = from[k];
        return mine[k];
      });
    }
  }

  // Whether a lane is to read an edge, and its vertex. `v`: that of an earlier one; `near`: it is not far from there.
  PENSTOCK_FN void take(tile const& t, u64 position, bool near, u64& v, bool& mine, u64& from) const {
    mine = position < t.end;
    if (mine) v = vertex_of(position, v, t.last, near);
    from = v;
    if constexpr (!Visitor::wants_all) mine = mine && visitor.wants(v);
  }

  // Each lane has runs of edges that follow each other, validated together.
  template <thread_group G, class Reader>
  PENSTOCK_FN void walk_behind_cache(G const& g, Reader& reader, tile const& t) const {
    const u64 stride = most_in_flight * size(g);
    vertex_window<G> window(*this, g, t);
    for (u64 first = t.begin; first < t.end; first += runs_in_flight * stride) {
      const u64 position = first + most_in_flight * index_in(g);
      window.move_to(first, first + runs_in_flight * stride);
      bool some[runs_in_flight];
      PENSTOCK_UNROLL
      for (u32 r = 0; r < runs_in_flight; ++r) some[r] = window.wants_some(position + r * stride);
      reader.template read_runs<false>(some, position, stride,
                                       [&](u64 edge, u32 k, u64& vertex) { return window.wants(edge, k, vertex); });
    }
  }

  // Neighbouring vertices of a tile, one for each lane, and whether they are wanted: the lanes exchange where lists end.
  // Offsets are trips to memory that depend on each other, and each validated read empties the L1 cache that shortens them
  // where edges are read in place. Collective.
  template <thread_group G>
  class vertex_window {
   public:
    PENSTOCK_FN vertex_window(tile_walk const& walk, G const& g, tile const& t)
        : walk_(walk), g_(g), tile_(t), width_(size(g)), index_(index_in(g)), base_(t.first) {
      if (!Visitor::wants_all || !has_one()) look(t.first);
    }

    // What is asked from now on is about edges from `first` on, before `stop`.
    PENSTOCK_FN void move_to(u64 first, u64 stop) {
      stop_ = stop < tile_.end ? stop : tile_.end;
      reaches_ = reaches(stop_);
      if (reaches_) return;
      const u64 next = reaches(first + 1) ? base_ + place_of(first) : walk_.vertex_of(first, base_, tile_.last, false);
      if (next == base_) return;
      look(next);
      reaches_ = reaches(stop_);
    }

    // Whether any of a lane's run is to be read; perhaps, where many vertices have few edges.
    PENSTOCK_FN bool wants_some(u64 position) const {
      const bool inside = position < stop_;
      if constexpr (Visitor::wants_all) return inside;
      if (!reaches_) return inside;
      if (has_one()) return inside && contains(wanted_, rank_of(0));
      const u64 end = position + most_in_flight < stop_ ? position + most_in_flight : stop_;
      const u32 first = place_of(position), last = place_of(end - 1);
      return inside && count_below(wanted_, rank_of(last)) + (contains(wanted_, rank_of(last)) ? 1 : 0) !=
                           count_below(wanted_, rank_of(first));
    }

    // Whether edge k of a lane's run, at `position`, is to be looked at, and its vertex.
    PENSTOCK_FN bool wants(u64 position, u32 k, u64& v) {
      const bool inside = position < stop_;
      if (reaches_) {
        const u32 place = has_one() ? 0 : place_of(position);
        v = base_ + place;
        if constexpr (Visitor::wants_all) return inside;
        return inside && contains(wanted_, rank_of(place));
      }
      if (k == 0) near_ = base_;
      if (inside) near_ = walk_.vertex_of(position, near_, tile_.last, k != 0 || width_ == 1);
      v = near_;
      if constexpr (Visitor::wants_all) return inside;
      return inside && walk_.visitor.wants(v);
    }

   private:
    using mask = decltype(std::declval<G const&>().members());

    PENSTOCK_FN u32 rank_of(u32 place) const { return nth(g_.members(), place); }
    PENSTOCK_FN u32 end_of(u32 place) const { return static_cast<u32>(g_.shfl(end_, rank_of(place))); }
    PENSTOCK_FN bool has_one() const { return tile_.first == tile_.last; }

    // The vertices from v on.
    PENSTOCK_FN void look(u64 v) {
      base_ = v;
      const u64 mine = v + index_;
      const bool inside = mine <= tile_.last;
      const u64 end = inside ? walk_.lists.offsets[mine + 1] : tile_.end;
      end_ = inside ? static_cast<u32>((end < tile_.end ? end : tile_.end) - tile_.begin) : ~0u;
      if constexpr (!Visitor::wants_all) wanted_ = g_.ballot(inside && walk_.visitor.wants(mine));
    }
    // Whether the edges before `stop` are of vertices that were looked at, or of earlier ones.
    PENSTOCK_FN bool reaches(u64 stop) const { return has_one() || end_of(width_ - 1) >= stop - tile_.begin; }
    // Whose edge it is: how many lists end before. REQUIRES: reaches(position + 1).
    PENSTOCK_FN u32 place_of(u64 position) const {
      const u32 within = static_cast<u32>(position - tile_.begin);
      u32 place = 0;
      for (u32 step = width_ / 2; step != 0; step /= 2) place += end_of(place + step - 1) <= within ? step : 0;
      return place;
    }

    tile_walk const& walk_;
    G const& g_;
    tile const& tile_;
    u32 width_, index_;
    u64 base_;
    u64 stop_ = 0;
    u64 near_ = 0;   ///< the vertex of the edge before
    u32 end_ = ~0u;  ///< of the list of this lane's vertex, from the tile's begin on
    bool reaches_ = false;
    mask wanted_{};
  };

  // The last vertex from `low` to `high` whose list begins at `position` or before. `near`: it is likely one of the first.
  PENSTOCK_FN u64 vertex_of(u64 position, u64 low, u64 high, bool near) const {
    for (u32 step = near ? 4 : 0; step != 0; --step) {
      if (low == high || lists.offsets[low + 1] > position) return low;
      ++low;
    }
    while (low < high) {
      const u64 middle = low + (high - low + 1) / 2;
      if (lists.offsets[middle] <= position) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

}  // namespace penstock::analytics
