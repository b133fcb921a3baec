// Walks over the edges of an opened graph: which groups get which of them, and the lists and tiles of frontiers.
#pragma once

#include "libs/analytics/edge_walks.hpp"
#include "libs/analytics/opened_graph.hpp"
#include "libs/analytics/start.hpp"
#include "libs/analytics/strategy.hpp"
#include "libs/analytics/tile_bodies.hpp"
#include "libs/analytics/walk_counts.hpp"

#include <optional>

namespace penstock::analytics {

/// The vertices of a round.
template <class Id>
struct vertex_list {
  Id* vertices = nullptr;  ///< local memory, in any order; a walk may sort them. nullptr: all of the graph
  u64 count = 0;
};

/// Of a tile of lists in place. A kibibyte of 4-byte ids: two reads in flight for each lane.
inline constexpr u64 resident_tile_edges = 256;

/// Lanes of a group that looks for a parent: most vertices find one among their first edges, and a sector has no more.
inline constexpr u32 pull_group_width = 8;

/// Outlives no reference that it is made of. For one thread.
template <class Id>
class edge_walker {
 public:
  /// Throws bad_input for a strategy that is none.
  explicit edge_walker(opened_graph<Id>& graph);

  /// How groups share out edges is left to the program, and so is how few of them it may read.
  bool is_automatic() const { return walk_.how == strategy::automatic && graph_.copies() == nullptr; }
  edge_lists<Id> lists() const;

  /// Hands the edges of the vertices that the visitor wants to it: all of `which`, or those of the graph that it says. Throws
  /// what went wrong.
  template <class Visitor>
  void walk(Visitor const& visitor, vertex_list<Id> which = {});

  /// The same over a frontier, for which `found_list` was called. Where walks list the tiles of what they find, so that no
  /// launch of its own is wanted for it, `listing` does what `visitor` does, and lists them.
  template <class Visitor, class Listing>
  void walk_frontier(Visitor const& visitor, Listing const& listing, vertex_list<Id> which) {
    if (!listing_tiles_) {
      forget_listed_tiles();
      return walk(visitor, which);
    }
    last_ = strategy::tiled_frontier;
    walk_tiles(listing, which);
    check();
  }

  /// Over the incoming edges of all vertices that are wanted, by narrow groups, for a visitor that stops early.
  template <class Visitor>
  void walk_narrow(Visitor const& visitor) {
    forget_listed_tiles();
    vertex_walk<Id, Visitor> body = all_vertices(visitor);
    if (incoming_lists const* const incoming = graph_.incoming(); incoming != nullptr) {
      body.lists.edges = incoming->edges.template view<Id>();
      body.lists.offsets = incoming->offsets();
    }
    body.run_vertices = vertices_a_run(graph_.vertices());
    start<pull_group_width>(graph_.on(), body.items(), body, graph_.limits());
    walks_incoming_ = graph_.incoming() != nullptr;
    check();
    walks_incoming_ = false;
  }

  /// Launches a body that looks at single edges of all vertices.
  template <class Body>
  void over_edges_of_vertices(Body const& body) {
    start(graph_.on(), ceil_div(graph_.vertices(), vertices_at_once), body, graph_.limits());
    check();
  }
  /// Launches one that looks at vertices alone, or at `count` of something else.
  template <class Body>
  void over_vertices(Body const& body) {
    over(graph_.vertices(), body);
  }
  template <class Body>
  void over(u64 count, Body const& body) {
    start(graph_.on(), ceil_div(count, vertices_at_once), body, {.units = graph_.limits().units});
  }

  /// What a round over `which` appends the vertices of the next round to (without vertices: one that walks no edges);
  /// `take_found` gives how many came since it was called last, and says that the next walk is over these.
  next_frontier<Id> found_list(buffer<Id>& items, vertex_list<Id> which = {});
  u64 take_found();
  /// Reads what kernels counted. A walk does so itself.
  void read_counts() { counts_.read(); }
  /// Not 0 once a walk met a weight that it cannot take.
  u64* bad_weight_word() { return counts_.at(walk_count::bad_weight); }
  bool met_bad_weight() const { return counts_[walk_count::bad_weight] != 0; }

  /// Edges of the vertices in a list.
  u64 edges_of(vertex_list<Id> which);

  /// CUDA: what a trial launches, so that nothing of it is done for the first time while modelled drives serve.
  template <class Visitor>
  void prepare_walks(Visitor const& visitor);
  template <class Visitor>
  void prepare_touched(Visitor const& visitor) {
    if (graph_.media() != nullptr) prepare_start(graph_.on(), tile_walk<Id, Visitor>{lists(), visitor});
  }
  template <class Visitor>
  void prepare_narrow(Visitor const& visitor) {
    if (graph_.media() != nullptr) prepare_start<pull_group_width>(graph_.on(), all_vertices(visitor));
  }
  template <class... Bodies>
  void prepare(Bodies const&... bodies) {
    if (graph_.media() != nullptr) (prepare_start(graph_.on(), bodies), ...);
  }

  /// As before the first walk: what was counted and listed is forgotten.
  void reset();
  /// As of the last walk, or `read_counts`.
  u64 count(walk_count which) const { return counts_[which]; }
  /// How the last walk shared out edges.
  strategy last() const { return last_; }
  u64 tile_bytes() const;
  /// Making the table of first vertices.
  double tile_seconds() const { return tile_seconds_; }

 private:
  bool may_tile() const;
  bool tiles_short_lists() const;
  void prepare_tiles();
  void check();
  u32 vertices_a_run(u64 count) const;
  vertex_list<Id> in_order(vertex_list<Id> which);
  strategy choose(vertex_list<Id> which);

  template <class Visitor>
  vertex_walk<Id, Visitor> all_vertices(Visitor const& visitor) const {
    vertex_walk<Id, Visitor> body{lists(), visitor};
    body.count = graph_.vertices();
    return body;
  }
  template <class Visitor>
  void walk_list(Visitor const& visitor, vertex_list<Id> which);
  template <class Visitor>
  void walk_tiles(Visitor const& visitor, vertex_list<Id> which);
  template <class Visitor>
  void walk_copies(Visitor const& visitor, vertex_list<Id> which);
  /// Of a round that walks something else.
  void forget_listed_tiles();
  /// Tiles of a list, in this side's; gives how many there are at most.
  u64 find_tiles(vertex_list<Id> which);
  /// Whether walks list the tiles of what they find. It costs registers, by which long lists are walked more slowly.
  bool lists_tiles() const {
    if (tiles_in_all_ == 0 || walk_.sort) return false;
    return walk_.how == strategy::tiled_frontier || (walk_.how == strategy::automatic && tiles_short_lists());
  }
  touched_tiles<Id> touched(u32 side) const {
    tile_side const& of = sides_[side];
    return {lists().offsets, of.seen.data(), {of.tiles.data(), counts_.at(word_of(side)), of.taken}, tile_shift_};
  }

  opened_graph<Id>& graph_;
  walk_options walk_;
  walk_counts counts_;
  u64 found_taken_ = 0;
  u32 tile_shift_ = 0;        ///< of tiles that are walked for some of their vertices
  u32 whole_tile_shift_ = 0;  ///< of those of a walk over all: no less
  u64 tiles_in_all_ = 0;
  /// Tiles that a round walks, while those of the next one are listed on the other side.
  struct tile_side {
    buffer<Id> tiles;
    buffer<u32> seen;
    u64 taken = 0;  ///< of its word, by earlier rounds
  };
  static walk_count word_of(u32 side) { return side == 0 ? walk_count::tile_count : walk_count::next_tile_count; }
  tile_side sides_[2];
  u32 side_ = 0;  ///< of the next walk
  bool listing_tiles_ = false, has_listed_tiles_ = false;
  buffer<Id> first_vertices_, other_tiles_, sorted_;
  buffer<u8> scratch_;
  strategy last_ = strategy::automatic;
  std::optional<strategy> chosen_;  ///< for the walk of this round, where `found_list` had to know
  bool walks_incoming_ = false;     ///< what is checked is of these lists
  double tile_seconds_ = 0;
};

extern template class edge_walker<std::int32_t>;
extern template class edge_walker<std::int64_t>;

template <class Id>
template <class Visitor>
void edge_walker<Id>::walk(Visitor const& visitor, vertex_list<Id> which) {
  last_ = chosen_ ? *chosen_ : choose(which);
  if (graph_.copies() != nullptr) {
    last_ = strategy::tiled;
    walk_copies(visitor, in_order(which));
    return check();
  }
  switch (last_) {
    case strategy::tiled: walk_tiles(visitor, {}); break;
    case strategy::tiled_frontier: walk_tiles(visitor, graph_.is_resident() ? in_order(which) : which); break;
    case strategy::frontier: walk_list(visitor, in_order(which)); break;
    default: {
      vertex_walk<Id, Visitor> body = all_vertices(visitor);
      body.aligned = last_ != strategy::merged;
      if (last_ == strategy::coarsened) {
        body.run_vertices = static_cast<u32>(walk_.parameter == 0 ? 8 : walk_.parameter);
      } else if (last_ == strategy::transposed) {
        body.stride = walk_.parameter == 0 ? 128 : walk_.parameter;
        body.pivot = ceil_div(body.count, body.stride);
        body.count = body.pivot * body.stride;  // some of them are no vertices
      }
      if (last_ == strategy::thread) {
        start<1>(graph_.on(), body.items(), body, graph_.limits());
      } else {
        start(graph_.on(), body.items(), body, graph_.limits());
      }
    }
  }
  check();
}

template <class Id>
template <class Visitor>
void edge_walker<Id>::prepare_walks(Visitor const& visitor) {
  if (graph_.media() == nullptr) return;
  const tile_walk<Id, Visitor> tiles{lists(), visitor};
  prepare(all_vertices(visitor), tiles, list_tiles<Id>{}, forget_tiles<Id>{}, count_list_edges<Id>{});
  prepare_start<1>(graph_.on(), all_vertices(visitor));
}

template <class Id>
template <class Visitor>
void edge_walker<Id>::walk_list(Visitor const& visitor, vertex_list<Id> which) {
  vertex_walk<Id, Visitor> body = all_vertices(visitor);
  if (which.vertices != nullptr) {
    body.chosen = which.vertices;
    body.count = which.count;
  }
  body.run_vertices = vertices_a_run(body.count);
  body.lines_ahead = graph_.is_cpu() ? 32 : 8;
  body.in_flight = graph_.is_cpu() ? 1 : most_in_flight;
  start(graph_.on(), body.items(), body, graph_.limits());
}

template <class Id>
template <class Visitor>
void edge_walker<Id>::walk_tiles(Visitor const& visitor, vertex_list<Id> which) {
  tile_walk<Id, Visitor> body{lists(), visitor};
  body.first_vertices = walk_.search ? nullptr : first_vertices_.data();
  body.edges = graph_.folder().edges();
  if (which.vertices == nullptr) {
    body.tile_shift = whole_tile_shift_;
    body.table_shift = whole_tile_shift_ - tile_shift_;
    body.count = ceil_div(body.edges, 1ull << whole_tile_shift_);
  } else {
    body.tile_shift = tile_shift_;
    tile_side& side = sides_[side_];
    body.count = has_listed_tiles_ ? counts_[word_of(side_)] - side.taken : find_tiles(which);
    body.chosen = {side.tiles.data(), counts_.at(word_of(side_)), side.taken};
    body.seen = walk_.sort ? nullptr : side.seen.data();
  }
  // A group has a tile in hand and one on its way. Where these are half of the cache, lines are lost before they are read;
  // groups that follow each other share the lines of small tiles.
  const u64 ahead = ceil_div((2 * pins_per_group * sizeof(Id)) << body.tile_shift, graph_.options().line_bytes);
  start(graph_.on(), body.items(), body, graph_.limits(2 * pins_per_group + std::min<u64>(ahead, 2 * pins_per_group)));
}

template <class Id>
template <class Visitor>
void edge_walker<Id>::walk_copies(Visitor const& visitor, vertex_list<Id> which) {
  subgraph_copies<Id>* const copies = graph_.copies();
  copies->take(which.vertices, which.count);
  while (const auto part = copies->next()) {
    Id const* const chosen = which.vertices == nullptr ? nullptr : which.vertices + part->first;
    tile_walk<Id, visitor_of_copies<Id, Visitor>> body{lists(), {visitor, chosen, part->first}};
    body.lists.edges = {copies->edges(), part->edges};
    body.lists.offsets = part->offsets;
    body.lists.lists = part->lists;
    body.edges = part->edges;
    body.tile_shift = ceil_log2(resident_tile_edges);
    body.count = ceil_div(part->edges, resident_tile_edges);
    start(graph_.on(), body.items(), body, graph_.limits());
  }
}

}  // namespace penstock::analytics
