// What every algorithm over a stored graph has: its executor, its edges wherever they are, and the account of a run.
#pragma once

#include "libs/analytics/edge_walks.hpp"
#include "libs/analytics/graph_choices.hpp"
#include "libs/analytics/process_memory.hpp"
#include "libs/analytics/start.hpp"
#include "libs/analytics/strategy.hpp"
#include "libs/analytics/subgraph_copies.hpp"
#include "libs/analytics/tile_bodies.hpp"
#include "libs/graph/folder_edges.hpp"
#include "libs/media/modelled_media.hpp"
#include "libs/media/placed_array.hpp"
#include "libs/media/volume_media.hpp"
#include "penstock/core/clock.hpp"

#include <array>

namespace penstock::analytics {

/// Reports what is done as `what` to the caller of a run. `options` outlives it.
inline graph::progress_meter progress_of(graph_options const& options, std::string const& what) {
  return graph::progress_meter([&options, what](u64 done, u64 total) {
    if (options.progress) options.progress(what, done, total);
  });
}

inline double seconds_since(u64 start_ns) { return static_cast<double>(now_ns() - start_ns) * 1e-9; }

/// The vertices of a round.
template <class Id>
struct vertex_list {
  Id* vertices = nullptr;  ///< local memory, in any order; a walk may sort them. nullptr: all of the graph
  u64 count = 0;
};

/// Lines that the lanes of one group may wait for at once: the piece of a list that they read together, cut by a line's end.
inline constexpr u64 pins_per_group = 2;

/// Of a tile of lists in place. A kibibyte of 4-byte ids: two reads in flight for each lane.
inline constexpr u64 resident_tile_edges = 256;

/// Lanes of a group that looks for a parent: most vertices find one among their first edges, and a sector has no more.
inline constexpr u32 pull_group_width = 8;

/// Outlives no reference that it is made of. For one thread.
template <class Id>
class graph_run {
 public:
  /// `weighted`: weights are read beside the edges, and take half of the cache. Throws bad_input for a graph without them.
  graph_run(graph_options const& options, graph::graph_folder const& graph, executor& on, bool weighted = false);

  u64 vertices() const { return graph_.vertices(); }
  executor& on() const { return on_; }
  graph::graph_folder const& graph() const { return graph_; }
  /// How groups share out edges is left to the program, and so is how few of them it may read.
  bool is_automatic() const { return walk_.how == strategy::automatic && !copies_; }
  u64 longest_list() const { return longest_list_; }
  bool is_cpu() const { return on_.kind() == executor_kind::cpu; }
  bool is_resident() const { return edges_.cache() == nullptr; }
  /// Whether single edges cost little more than themselves: where lists are read in place, or once their cache has all lines.
  /// In a smaller cache the first edges of all vertices are on as many lines as all edges are.
  bool reads_single_edges() const;

  edge_lists<Id> lists() const;
  template <class Weight>
  array_view<Weight> weights() const {
    return copies_ ? copies_->template weights<Weight>() : weights_->view<Weight>();
  }

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

  /// Lists of incoming edges: those of an undirected graph, or of a directed one's transpose once it was opened. REQUIRES for
  /// that: the lists are read in place.
  bool has_incoming() const { return !graph_.directed() || incoming_; }
  void open_incoming();

  /// Over the incoming edges of all vertices that are wanted, by narrow groups, for a visitor that stops early.
  template <class Visitor>
  void walk_narrow(Visitor const& visitor) {
    forget_listed_tiles();
    vertex_walk<Id, Visitor> body = all_vertices(visitor);
    if (incoming_) {
      body.lists.edges = incoming_->edges.template view<Id>();
      body.lists.offsets = is_cpu() ? incoming_->graph.offsets().data() : incoming_->offsets.data();
    }
    body.run_vertices = vertices_a_run(vertices());
    start<pull_group_width>(on_, body.items(), body, limits());
    walked_incoming_ = incoming_.has_value();
    check();
    walked_incoming_ = false;
  }

  /// Launches a body that looks at single edges of all vertices.
  template <class Body>
  void over_edges_of_vertices(Body const& body) {
    start(on_, ceil_div(vertices(), vertices_at_once), body, limits());
    check();
  }
  /// Launches one that looks at vertices alone, or at `count` of something else.
  template <class Body>
  void over_vertices(Body const& body) {
    over(vertices(), body);
  }
  template <class Body>
  void over(u64 count, Body const& body) {
    start(on_, ceil_div(count, vertices_at_once), body, {.units = limits().units});
  }

  /// What a round over `which` appends the vertices of the next round to (without vertices: one that walks no edges);
  /// `take_found` gives how many came since it was called last, and says that the next walk is over these.
  next_frontier<Id> found_list(buffer<Id>& items, vertex_list<Id> which = {});
  u64 take_found();
  /// Reads what kernels counted. A walk does so itself.
  void read_counts() { words_.read(counted_); }
  /// Not 0 once a walk met a weight that it cannot take.
  u64* bad_weight_word() { return words_.data() + bad_weight; }
  bool met_bad_weight() const { return counted_[bad_weight] != 0; }

  /// Edges of the vertices in a list.
  u64 edges_of(vertex_list<Id> which);

  /// Local memory, filled with one value.
  template <class T>
  buffer<T> filled(u64 count, T value) {
    vertex_bytes_ += count * sizeof(T);
    buffer<T> made(on_.memory(), memory_kind::local, count);
    made.write(std::vector<T>(count, value));
    return made;
  }
  template <class T>
  T read(T const* at) const {
    T value;
    on_.memory().read(&value, at, sizeof value);
    return value;
  }
  template <class T>
  void write(T* at, T value) {
    on_.memory().write(at, &value, sizeof value);
  }

  /// A round over `size` vertices begins; `done` of `of` are known to be finished.
  void begin_round(graph_cost& cost, std::string const& what, u64 size, u64 done, u64 of);
  /// `how`: what it was, if it was no walk.
  void end_round(graph_cost& cost, char const* how = nullptr);

  /// CUDA: what a trial launches, so that nothing of it is done for the first time while modelled drives serve.
  template <class Visitor>
  void prepare_walks(Visitor const& visitor);
  template <class Visitor>
  void prepare_touched(Visitor const& visitor) {
    if (media_) prepare_start(on_, tile_walk<Id, Visitor>{lists(), visitor});
  }
  template <class Visitor>
  void prepare_narrow(Visitor const& visitor) {
    if (media_) prepare_start<pull_group_width>(on_, all_vertices(visitor));
  }
  template <class... Bodies>
  void prepare(Bodies const&... bodies) {
    if (media_) (prepare_start(on_, bodies), ...);
  }

  /// A trial is what is timed and counted: what `cost` tells is of the last one, but for trial_seconds.
  template <class Job>
  void trial(graph_cost& cost, Job const& job) {
    begin_trial(cost);
    try {
      job();
    } catch (...) {
      // While drives serve, what is thrown would free memory, and wait for them.
      if (media_) media_->stop();
      throw;
    }
    end_trial(cost);
  }

  graph::progress_meter meter(std::string const& what) const { return progress_of(options_, what); }

 private:
  bool may_tile() const;
  bool tiles_short_lists() const;
  void prepare_tiles();
  u64 moved_bytes() const;
  void check();
  void begin_trial(graph_cost& cost);
  void end_trial(graph_cost& cost);
  /// `lines_each`: of a cache, that there should be for each group.
  launch_limits limits(u64 lines_each = 2 * pins_per_group) const;
  u32 vertices_a_run(u64 count) const;
  bool sorts() const;
  vertex_list<Id> in_order(vertex_list<Id> which);
  strategy choose(vertex_list<Id> which);
  std::vector<media::placed_array const*> arrays() const;

  template <class Visitor>
  vertex_walk<Id, Visitor> all_vertices(Visitor const& visitor) const {
    vertex_walk<Id, Visitor> body{lists(), visitor};
    body.count = vertices();
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
    return {lists().offsets, of.seen.data(), {of.tiles.data(), words_.data() + word_of(side), of.taken}, tile_shift_};
  }

  graph_options const& options_;
  graph::graph_folder const& graph_;
  executor& on_;
  walk_options walk_;
  std::unique_ptr<media::shared_media> media_;
  media::placed_array edges_;
  std::optional<media::placed_array> weights_;
  std::optional<subgraph_copies<Id>> copies_;
  struct incoming_lists {
    incoming_lists(executor& on, graph::graph_folder const& of, graph_options const& options);
    graph::graph_folder graph;
    media::placed_array edges;
    buffer<u64> offsets;
  };
  std::optional<incoming_lists> incoming_;
  bool walked_incoming_ = false;  ///< what is checked is of these
  buffer<u64> offsets_;
  /// What kernels count, and what was read of it when the last walk was over.
  enum word : u32 { traversed, sectors, bad_edge, bad_weight, found, tile_count, next_tile_count, list_edges, words };
  buffer<u64> words_;
  std::array<u64, words> counted_{};
  u64 found_taken_ = 0;
  u64 longest_list_ = 0;
  u32 tile_shift_ = 0;        ///< of tiles that are walked for some of their vertices
  u32 whole_tile_shift_ = 0;  ///< of those of a walk over all: no less
  u64 tiles_in_all_ = 0;
  /// Tiles that a round walks, while those of the next one are listed on the other side.
  struct tile_side {
    buffer<Id> tiles;
    buffer<u32> seen;
    u64 taken = 0;  ///< of its word, by earlier rounds
  };
  static u32 word_of(u32 side) { return side == 0 ? tile_count : next_tile_count; }
  tile_side sides_[2];
  u32 side_ = 0;  ///< of the next walk
  bool listing_tiles_ = false, has_listed_tiles_ = false;
  buffer<Id> first_vertices_, other_tiles_, sorted_;
  buffer<u8> scratch_;
  strategy last_ = strategy::automatic;
  std::optional<strategy> chosen_;  ///< for the walk of this round, where `found_list` had to know
  u64 vertex_bytes_ = 0;
  double tile_seconds_ = 0;
  std::vector<cache_stats> before_;  ///< a trial, of each cache
  u64 trial_begun_ns_ = 0, round_begun_ns_ = 0;
  u64 moved_before_ = 0;   ///< the round, in the trial
  u64 copied_before_ = 0;  ///< the trial
};

extern template class graph_run<std::int32_t>;
extern template class graph_run<std::int64_t>;

template <class Id>
template <class Visitor>
void graph_run<Id>::walk(Visitor const& visitor, vertex_list<Id> which) {
  last_ = chosen_ ? *chosen_ : choose(which);
  if (copies_) {
    last_ = strategy::tiled;
    walk_copies(visitor, in_order(which));
    return check();
  }
  switch (last_) {
    case strategy::tiled: walk_tiles(visitor, {}); break;
    case strategy::tiled_frontier: walk_tiles(visitor, is_resident() ? in_order(which) : which); break;
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
        start<1>(on_, body.items(), body, limits());
      } else {
        start(on_, body.items(), body, limits());
      }
    }
  }
  check();
}

template <class Id>
template <class Visitor>
void graph_run<Id>::prepare_walks(Visitor const& visitor) {
  if (!media_) return;
  const tile_walk<Id, Visitor> tiles{lists(), visitor};
  prepare(all_vertices(visitor), tiles, list_tiles<Id>{}, forget_tiles<Id>{}, count_list_edges<Id>{});
  prepare_start<1>(on_, all_vertices(visitor));
}

template <class Id>
template <class Visitor>
void graph_run<Id>::walk_list(Visitor const& visitor, vertex_list<Id> which) {
  vertex_walk<Id, Visitor> body = all_vertices(visitor);
  if (which.vertices != nullptr) {
    body.chosen = which.vertices;
    body.count = which.count;
  }
  body.run_vertices = vertices_a_run(body.count);
  body.lines_ahead = is_cpu() ? 32 : 8;
  body.in_flight = is_cpu() ? 1 : most_in_flight;
  start(on_, body.items(), body, limits());
}

template <class Id>
template <class Visitor>
void graph_run<Id>::walk_tiles(Visitor const& visitor, vertex_list<Id> which) {
  tile_walk<Id, Visitor> body{lists(), visitor};
  body.first_vertices = walk_.search ? nullptr : first_vertices_.data();
  body.edges = graph_.edges();
  if (which.vertices == nullptr) {
    body.tile_shift = whole_tile_shift_;
    body.table_shift = whole_tile_shift_ - tile_shift_;
    body.count = ceil_div(body.edges, 1ull << whole_tile_shift_);
  } else {
    body.tile_shift = tile_shift_;
    tile_side& side = sides_[side_];
    body.count = has_listed_tiles_ ? counted_[word_of(side_)] - side.taken : find_tiles(which);
    body.chosen = {side.tiles.data(), words_.data() + word_of(side_), side.taken};
    body.seen = walk_.sort ? nullptr : side.seen.data();
  }
  // A group has a tile in hand and one on its way. Where these are half of the cache, lines are lost before they are read;
  // groups that follow each other share the lines of small tiles.
  const u64 ahead = ceil_div((2 * pins_per_group * sizeof(Id)) << body.tile_shift, options_.line_bytes);
  start(on_, body.items(), body, limits(2 * pins_per_group + std::min<u64>(ahead, 2 * pins_per_group)));
}

template <class Id>
template <class Visitor>
void graph_run<Id>::walk_copies(Visitor const& visitor, vertex_list<Id> which) {
  copies_->take(which.vertices, which.count);
  while (const auto part = copies_->next()) {
    Id const* const chosen = which.vertices == nullptr ? nullptr : which.vertices + part->first;
    tile_walk<Id, visitor_of_copies<Id, Visitor>> body{lists(), {visitor, chosen, part->first}};
    body.lists.edges = {copies_->edges(), part->edges};
    body.lists.offsets = part->offsets;
    body.lists.lists = part->lists;
    body.edges = part->edges;
    body.tile_shift = ceil_log2(resident_tile_edges);
    body.count = ceil_div(part->edges, resident_tile_edges);
    start(on_, body.items(), body, limits());
  }
}

/// Opens graph and executor, and calls job(graph, executor, Id{}, when this began, result) for the type of the graph's ids.
template <class Result, class Job>
Result run_on_graph(graph_options const& options, Job const& job) {
  const u64 begun = now_ns();
  reset_peak_memory();
  const auto graph = volumes::open_graph(options.graph);
  std::unique_ptr<executor> own;
  if (!options.drive) own = media::open_executor_for(graph, options, has_kernels);
  executor& on = options.drive ? *options.drive->on : *own;
  Result result;
  result.executor = on.kind() == executor_kind::cuda ? "cuda" : "cpu";
  result.device = on.device();
  result.placement = options.placement;
  result.strategy = options.strategy;
  if (graph.vertices() == 0) {
    if constexpr (requires { result.source; })
      throw_bad_input("search", graph.path(), "the graph has no vertices, so there is none to begin at");
    result.trial_seconds.assign(options.trials, 0);
    if (options.verify) result.verified = true;  // of none
    return result;
  }
  if (graph.edges_place().item_bytes == 4) {
    job(graph, on, std::int32_t{}, begun, result);
  } else {
    job(graph, on, std::int64_t{}, begun, result);
  }
  return result;
}

/// The last steps of a job: what the process took, and the verification, if it was asked for: a sentence, or nothing. What is
/// found is right only of a graph that is what it says: an undirected one is checked for having each edge both ways.
template <class Verify>
void verify_result(graph_options const& options, graph::graph_folder const& graph, graph_cost& cost, Verify const& verify) {
  const process_memory memory = read_process_memory();
  cost.peak_rss_bytes = memory.peak_bytes;
  cost.file_rss_bytes = memory.file_bytes;
  if (!options.verify) return;
  const u64 begun = now_ns();
  graph::progress_meter unseen;
  graph::check_both_ways(graph, 0, unseen);
  cost.violation = verify();
  cost.verify_seconds = seconds_since(begun);
  cost.verified = cost.violation.empty();
}

}  // namespace penstock::analytics
