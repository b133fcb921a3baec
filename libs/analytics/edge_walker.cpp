#include "libs/analytics/edge_walker.hpp"

#include "penstock/core/clock.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace penstock::analytics {
namespace {

/// Vertices that a group takes at once; a warp asks for the first lines of as many in one go.
constexpr u64 longest_run = 32;
constexpr u64 longest_list_for_a_group = 1024;
constexpr u64 short_lists_mean = 8;
/// Of a tile behind a cache that is walked for some of its vertices: it is looked at whole for each of them.
constexpr u64 touched_tile_edges = 128;
/// Is read in place as it is: to sort it would take longer.
constexpr u64 short_list = 4096;

}  // namespace

template <class Id>
edge_walker<Id>::edge_walker(opened_graph<Id>& graph)
    : graph_(graph), walk_(parse_strategy(graph.options().strategy)), counts_(graph.on()) {
  if (may_tile()) prepare_tiles();
  if (!graph.wants_order()) return;
  sorted_ = {graph.on().memory(), memory_kind::local, graph.vertices()};
  // CUB has its memory, and its kernels are there, before drives may serve.
  buffer<Id> zeros(graph.on().memory(), memory_kind::local, graph.is_cpu() ? 0 : graph.vertices());
  if (!graph.is_cpu()) sort_numbers(graph.on(), zeros.data(), sorted_.data(), graph.vertices(), graph.vertices(), scratch_);
}

template <class Id>
bool edge_walker<Id>::may_tile() const {
  if (graph_.folder().edges() == 0 || graph_.copies() != nullptr) return false;
  if (walk_.how == strategy::tiled || walk_.how == strategy::tiled_frontier) return true;
  return walk_.how == strategy::automatic && !(graph_.is_cpu() && graph_.is_resident());
}

/// As in meshes and road networks, which are deep: their rounds are short. Behind a cache a GPU looks up the lines of many of
/// their lists at once.
template <class Id>
bool edge_walker<Id>::tiles_short_lists() const {
  if (graph_.is_cpu() || graph_.is_resident()) return false;
  return graph_.longest_list() <= longest_list_for_a_group && graph_.folder().edges() <= short_lists_mean * graph_.vertices();
}

template <class Id>
void edge_walker<Id>::prepare_tiles() {
  u64 edges = walk_.parameter, edges_of_whole = edges;
  if (edges == 0) {
    const u64 line = graph_.options().line_bytes / sizeof(Id);
    // Small tiles spread long lists over more groups. Where not all lines stay, each is read as one tile: it may be gone before
    // the next group comes.
    const bool of_some = walk_.how == strategy::tiled_frontier || (walk_.how == strategy::automatic && tiles_short_lists());
    const u64 cached = of_some                                                           ? touched_tile_edges
                       : walk_.how == strategy::automatic && graph_.reads_single_edges() ? resident_tile_edges
                                                                                         : line;
    edges = graph_.is_resident() ? resident_tile_edges : std::max<u64>(32, std::min(line, cached));
    edges_of_whole = graph_.is_resident() ? edges : std::max(edges, line);
  }
  tile_shift_ = ceil_log2(edges);
  whole_tile_shift_ = ceil_log2(edges_of_whole);
  tiles_in_all_ = ceil_div(graph_.folder().edges(), edges);
  if (tiles_in_all_ > static_cast<u64>(std::numeric_limits<Id>::max())) {
    throw_bad_input("walk", graph_.folder().path(), "it has more tiles than its ids count: choose larger tiles");
  }
  if (!walk_.search) {
    first_vertices_ = {graph_.on().memory(), memory_kind::local, tiles_in_all_};
    graph_.on().synchronize();
    const u64 begun = now_ns();
    over(graph_.vertices(), list_first_vertices<Id>{lists().offsets, first_vertices_.data(), graph_.vertices(), tile_shift_});
    graph_.on().synchronize();
    tile_seconds_ = static_cast<double>(now_ns() - begun) * 1e-9;
  }
  if (walk_.how == strategy::tiled) return;
  const u64 most = tiles_in_all_ + (walk_.sort ? graph_.vertices() * 2 : 0);
  for (tile_side& side : sides_) {
    side.tiles = {graph_.on().memory(), memory_kind::local, most};
    if (!walk_.sort) {
      side.seen = {graph_.on().memory(), memory_kind::local, ceil_div(tiles_in_all_, 32)};
      side.seen.write(std::vector<u32>(side.seen.size(), 0));
    }
    if (!lists_tiles()) break;
  }
  if (!walk_.sort) return;
  other_tiles_ = {graph_.on().memory(), memory_kind::local, most};
  sort_unique(graph_.on(), sides_[0].tiles.data(), other_tiles_.data(), most, tiles_in_all_, scratch_,
              counts_.at(walk_count::tile_count));
}

template <class Id>
u64 edge_walker<Id>::find_tiles(vertex_list<Id> which) {
  tile_side& side = sides_[side_];
  side.taken = counts_[word_of(side_)];  // read when the last walk was over
  over(which.count, list_tiles<Id>{touched(side_), which.vertices, which.count});
  const u64 most = std::min(tiles_in_all_, which.count * ((graph_.longest_list() >> tile_shift_) + 2));
  if (!walk_.sort) return most;
  u64* const length = counts_.at(word_of(side_));
  const u64 listed = graph_.read(length) - side.taken;
  const u64 left = sort_unique(graph_.on(), side.tiles.data(), other_tiles_.data(), listed, tiles_in_all_, scratch_, length);
  side.taken = 0;
  graph_.write(length, left);
  return left;
}

template <class Id>
void edge_walker<Id>::forget_listed_tiles() {
  if (!std::exchange(has_listed_tiles_, false)) return;
  tile_side& side = sides_[side_];
  const u64 count = counts_[word_of(side_)] - side.taken;
  if (count != 0) over(count, forget_tiles<Id>{side.tiles.data(), side.seen.data(), count});
}

template <class Id>
next_frontier<Id> edge_walker<Id>::found_list(buffer<Id>& items, vertex_list<Id> which) {
  next_frontier<Id> next{{items.data(), counts_.at(walk_count::found), found_taken_}};
  listing_tiles_ = lists_tiles();
  if (listing_tiles_ && which.vertices != nullptr) {
    chosen_ = choose(which);
    listing_tiles_ = chosen_ == strategy::tiled_frontier;
  }
  if (!listing_tiles_) return next;
  const u32 other = side_ ^ 1u;
  sides_[other].taken = counts_[word_of(other)];  // those have been walked
  next.touched = touched(other);
  return next;
}

template <class Id>
u64 edge_walker<Id>::take_found() {
  const u64 count = counts_[walk_count::found] - found_taken_;
  found_taken_ = counts_[walk_count::found];
  chosen_.reset();
  if (listing_tiles_) side_ ^= 1u;
  has_listed_tiles_ = std::exchange(listing_tiles_, false);
  return count;
}

template <class Id>
u64 edge_walker<Id>::edges_of(vertex_list<Id> which) {
  u64* const sum = counts_.at(walk_count::list_edges);
  graph_.write(sum, u64{0});
  over(which.count, count_list_edges<Id>{lists().offsets, which.vertices, which.count, sum});
  return graph_.read(sum);
}

template <class Id>
vertex_list<Id> edge_walker<Id>::in_order(vertex_list<Id> which) {
  if (which.vertices == nullptr || !graph_.wants_order() || (graph_.is_resident() && which.count < short_list)) return which;
  return {sort_numbers(graph_.on(), which.vertices, sorted_.data(), which.count, graph_.vertices(), scratch_), which.count};
}

template <class Id>
strategy edge_walker<Id>::choose(vertex_list<Id> which) {
  const bool tiles = tiles_in_all_ != 0;
  switch (walk_.how) {
    case strategy::automatic: break;
    case strategy::tiled: return tiles ? strategy::tiled : strategy::frontier;
    case strategy::tiled_frontier:
      if (!tiles) return strategy::frontier;
      return which.vertices != nullptr ? strategy::tiled_frontier : strategy::tiled;
    default: return walk_.how;
  }
  if (!tiles) return strategy::frontier;
  if (which.vertices == nullptr) return strategy::tiled;
  // CPU threads have nothing to wait for together: tiles save them the look-ups of lines that lists share, where all are read.
  if (graph_.is_cpu()) return strategy::frontier;
  // A list that is long for one group holds all others up; and over a link whole tiles are read faster than lists.
  const bool in_tiles = graph_.longest_list() > longest_list_for_a_group ||
                        (graph_.is_resident() && graph_.wants_order() && which.count >= short_list) || tiles_short_lists();
  if (!in_tiles) return strategy::frontier;
  // Most tiles are touched: in their order they are read faster than they are found.
  const u64 many = graph_.folder().edges() / 4;
  return which.count * graph_.longest_list() > many && edges_of(which) > many ? strategy::tiled : strategy::tiled_frontier;
}

template <class Id>
edge_lists<Id> edge_walker<Id>::lists() const {
  edge_lists<Id> lists;
  lists.edges = graph_.edges();
  lists.offsets = graph_.offsets();
  lists.traversed = counts_.at(walk_count::traversed);
  lists.sectors = counts_.at(walk_count::sectors);
  lists.bad_edge = counts_.at(walk_count::bad_edge);
  lists.vertices = lists.lists = graph_.vertices();
  lists.asks_ahead = graph_.options().placement != "host-cached";
  return lists;
}

/// Runs that keep all groups busy.
template <class Id>
u32 edge_walker<Id>::vertices_a_run(u64 count) const {
  const u64 units = graph_.limits().units != 0 ? graph_.limits().units : graph_.on().units();
  const u64 groups = graph_.is_cpu() ? 16 * units : 2 * units * cuda_blocks_per_unit * (cuda_block_threads / list_group_width);
  return static_cast<u32>(std::clamp<u64>(count / groups, 1, longest_run));
}

template <class Id>
void edge_walker<Id>::check() {
  read_counts();
  graph_.check_faults();
  if (counts_[walk_count::bad_edge] == 0) return;
  const u64 bad = graph_.copies() != nullptr ? graph_.copies()->find_bad_edge() : counts_[walk_count::bad_edge];
  graph::graph_folder const& walked = walks_incoming_ ? graph_.incoming()->graph : graph_.folder();
  throw_bad_input("search", walked.edges_place().path,
                  "edge " + std::to_string(bad - 1) + " leads to no vertex of the graph: convert the graph again");
}

template <class Id>
void edge_walker<Id>::reset() {
  counts_.clear();
  found_taken_ = 0;
  side_ = 0;
  listing_tiles_ = has_listed_tiles_ = false;
  for (tile_side& side : sides_) side.taken = 0;
}

template <class Id>
u64 edge_walker<Id>::tile_bytes() const {
  u64 bytes = first_vertices_.bytes() + other_tiles_.bytes();
  for (tile_side const& side : sides_) bytes += side.tiles.bytes() + side.seen.bytes();
  return bytes;
}

template class edge_walker<std::int32_t>;
template class edge_walker<std::int64_t>;

}  // namespace penstock::analytics
