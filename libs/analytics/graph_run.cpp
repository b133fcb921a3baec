#include "libs/analytics/graph_run.hpp"

#include "libs/graph/incoming.hpp"
#include "libs/media/names.hpp"

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

u64 cache_share(graph_options const& options, bool weighted) {
  return weighted ? options.cache_bytes / 2 : options.cache_bytes;
}

std::unique_ptr<media::shared_media> make_media(graph_options const& options, graph::graph_folder const& graph, executor& on,
                                                bool weighted) {
  if (weighted && options.drive) throw_bad_input("open", graph.path(), "weights do not lie on the drive: search without them");
  std::vector<graph::array_place const*> arrays{&graph.edges_place()};
  if (weighted) arrays.push_back(&weights_of(graph));
  if (graph.edges_place().stored != nullptr) {
    if (options.media == "file" && options.placement == "storage")
      return std::make_unique<media::volume_media>(on, arrays, options);
    throw_bad_input("open", graph.path(),
                    "media " + options.media + " at placement " + options.placement +
                        ": a graph on a volume is read where it lies, through a cache; choose placement storage, or export it");
  }
  if (options.media == "file" || options.placement != "storage") {
    if (options.media == "file") return nullptr;
    throw_bad_input("open", graph.path(),
                    "media " + options.media + " at placement " + options.placement +
                        ": modelled drives are storage; choose placement storage");
  }
  return std::make_unique<media::modelled_media>(on, arrays, options);
}

}  // namespace

template <class Id>
graph_run<Id>::graph_run(graph_options const& options, graph::graph_folder const& graph, executor& on, bool weighted)
    : options_(options), graph_(graph), on_(on), walk_(parse_strategy(options.strategy)),
      media_(make_media(options, graph, on, weighted)),
      edges_(media_ ? media::placed_array(*media_, 0)
                    : media::placed_array(on, graph.edges_place(), options, cache_share(options, weighted))),
      words_(on.memory(), memory_kind::local, words) {
  if (weighted && media_) weights_.emplace(*media_, 1);
  if (weighted && !media_) weights_.emplace(on, weights_of(graph), options, cache_share(options, true));
  if (options.placement == "subgraph") copies_.emplace(on, graph, options, edges_, weights_ ? &*weights_ : nullptr);
  for (media::placed_array const* array : arrays()) {
    if (array->cache() == nullptr) continue;
    array->cache()->check_pins(is_cpu() ? on.units() : cuda_block_threads / list_group_width, is_cpu() ? 1 : pins_per_group);
  }
  words_.write(std::vector<u64>(words, 0));
  if (!is_cpu()) {
    offsets_ = {on.memory(), memory_kind::local, graph.vertices() + 1};
    offsets_.write(graph.offsets());
  }
  auto const offsets = graph.offsets();
  for (u64 v = 0; v < vertices(); ++v) longest_list_ = std::max(longest_list_, offsets[v + 1] - offsets[v]);
  if (may_tile()) prepare_tiles();
  if (sorts()) {
    sorted_ = {on.memory(), memory_kind::local, vertices()};
    // CUB has its memory, and its kernels are there, before drives may serve.
    buffer<Id> zeros(on.memory(), memory_kind::local, is_cpu() ? 0 : vertices());
    if (!is_cpu()) sort_numbers(on, zeros.data(), sorted_.data(), vertices(), vertices(), scratch_);
  }
}

template <class Id>
graph_run<Id>::incoming_lists::incoming_lists(executor& on, graph::graph_folder const& of, graph_options const& options)
    : graph(graph::open_incoming(of)), edges(on, graph.edges_place(), options, 0) {
  if (on.kind() == executor_kind::cpu) return;
  offsets = {on.memory(), memory_kind::local, graph.vertices() + 1};
  offsets.write(graph.offsets());
}

template <class Id>
void graph_run<Id>::open_incoming() {
  incoming_.emplace(on_, graph_, options_);
}

template <class Id>
bool graph_run<Id>::reads_single_edges() const {
  if (is_resident()) return true;
  line_cache_view const& view = edges_.cache()->view();
  u64 bytes = graph_.edges() * sizeof(Id);
  if (media_ && weights_) bytes += graph_.edges() * sizeof(u32);  // drives have one cache
  return u64{view.frames} << view.line_shift >= bytes;
}

template <class Id>
bool graph_run<Id>::may_tile() const {
  if (graph_.edges() == 0 || copies_) return false;
  if (walk_.how == strategy::tiled || walk_.how == strategy::tiled_frontier) return true;
  return walk_.how == strategy::automatic && !(is_cpu() && is_resident());
}

/// As in meshes and road networks, which are deep: their rounds are short. Behind a cache a GPU looks up the lines of many of
/// their lists at once.
template <class Id>
bool graph_run<Id>::tiles_short_lists() const {
  if (is_cpu() || is_resident()) return false;
  return longest_list_ <= longest_list_for_a_group && graph_.edges() <= short_lists_mean * vertices();
}

template <class Id>
void graph_run<Id>::prepare_tiles() {
  u64 edges = walk_.parameter, edges_of_whole = edges;
  if (edges == 0) {
    const u64 line = options_.line_bytes / sizeof(Id);
    // Small tiles spread long lists over more groups. Where not all lines stay, each is read as one tile: it may be gone before
    // the next group comes.
    const bool of_some = walk_.how == strategy::tiled_frontier || (walk_.how == strategy::automatic && tiles_short_lists());
    const u64 cached = of_some                                                    ? touched_tile_edges
                       : walk_.how == strategy::automatic && reads_single_edges() ? resident_tile_edges
                                                                                  : line;
    edges = is_resident() ? resident_tile_edges : std::max<u64>(32, std::min(line, cached));
    edges_of_whole = is_resident() ? edges : std::max(edges, line);
  }
  tile_shift_ = ceil_log2(edges);
  whole_tile_shift_ = ceil_log2(edges_of_whole);
  tiles_in_all_ = ceil_div(graph_.edges(), edges);
  if (tiles_in_all_ > static_cast<u64>(std::numeric_limits<Id>::max())) {
    throw_bad_input("walk", graph_.path(), "it has more tiles than its ids count: choose larger tiles");
  }
  if (!walk_.search) {
    first_vertices_ = {on_.memory(), memory_kind::local, tiles_in_all_};
    on_.synchronize();
    const u64 begun = now_ns();
    over(vertices(), list_first_vertices<Id>{lists().offsets, first_vertices_.data(), vertices(), tile_shift_});
    on_.synchronize();
    tile_seconds_ = seconds_since(begun);
  }
  if (walk_.how == strategy::tiled) return;
  const u64 most = tiles_in_all_ + (walk_.sort ? vertices() * 2 : 0);
  for (tile_side& side : sides_) {
    side.tiles = {on_.memory(), memory_kind::local, most};
    if (!walk_.sort) {
      side.seen = {on_.memory(), memory_kind::local, ceil_div(tiles_in_all_, 32)};
      side.seen.write(std::vector<u32>(side.seen.size(), 0));
    }
    if (!lists_tiles()) break;
  }
  if (!walk_.sort) return;
  other_tiles_ = {on_.memory(), memory_kind::local, most};
  sort_unique(on_, sides_[0].tiles.data(), other_tiles_.data(), most, tiles_in_all_, scratch_, words_.data() + tile_count);
}

template <class Id>
u64 graph_run<Id>::find_tiles(vertex_list<Id> which) {
  tile_side& side = sides_[side_];
  side.taken = counted_[word_of(side_)];  // read when the last walk was over
  over(which.count, list_tiles<Id>{touched(side_), which.vertices, which.count});
  const u64 most = std::min(tiles_in_all_, which.count * ((longest_list_ >> tile_shift_) + 2));
  if (!walk_.sort) return most;
  u64* const length = words_.data() + word_of(side_);
  const u64 listed = read(length) - side.taken;
  const u64 left = sort_unique(on_, side.tiles.data(), other_tiles_.data(), listed, tiles_in_all_, scratch_, length);
  side.taken = 0;
  write(length, left);
  return left;
}

template <class Id>
void graph_run<Id>::forget_listed_tiles() {
  if (!std::exchange(has_listed_tiles_, false)) return;
  tile_side& side = sides_[side_];
  const u64 count = counted_[word_of(side_)] - side.taken;
  if (count != 0) over(count, forget_tiles<Id>{side.tiles.data(), side.seen.data(), count});
}

template <class Id>
next_frontier<Id> graph_run<Id>::found_list(buffer<Id>& items, vertex_list<Id> which) {
  next_frontier<Id> next{{items.data(), words_.data() + found, found_taken_}};
  listing_tiles_ = lists_tiles();
  if (listing_tiles_ && which.vertices != nullptr) {
    chosen_ = choose(which);
    listing_tiles_ = chosen_ == strategy::tiled_frontier;
  }
  if (!listing_tiles_) return next;
  const u32 other = side_ ^ 1u;
  sides_[other].taken = counted_[word_of(other)];  // those have been walked
  next.touched = touched(other);
  return next;
}

template <class Id>
u64 graph_run<Id>::take_found() {
  const u64 count = counted_[found] - found_taken_;
  found_taken_ = counted_[found];
  chosen_.reset();
  if (listing_tiles_) side_ ^= 1u;
  has_listed_tiles_ = std::exchange(listing_tiles_, false);
  return count;
}

template <class Id>
u64 graph_run<Id>::edges_of(vertex_list<Id> which) {
  u64* const sum = words_.data() + list_edges;
  write(sum, u64{0});
  over(which.count, count_list_edges<Id>{lists().offsets, which.vertices, which.count, sum});
  return read(sum);
}

/// Lists that share a line are read together: without it a line is fetched once for each of them. Over a link, too, reads that
/// go up through memory are faster: by a half for shortest paths of urand:22, where pages of 4 KiB are translated for the GPU.
template <class Id>
bool graph_run<Id>::sorts() const {
  return !is_resident() || (!is_cpu() && options_.placement != "hbm");
}

template <class Id>
vertex_list<Id> graph_run<Id>::in_order(vertex_list<Id> which) {
  if (which.vertices == nullptr || !sorts() || (is_resident() && which.count < short_list)) return which;
  return {sort_numbers(on_, which.vertices, sorted_.data(), which.count, vertices(), scratch_), which.count};
}

template <class Id>
strategy graph_run<Id>::choose(vertex_list<Id> which) {
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
  if (is_cpu()) return strategy::frontier;
  // A list that is long for one group holds all others up; and over a link whole tiles are read faster than lists.
  const bool in_tiles = longest_list_ > longest_list_for_a_group || (is_resident() && sorts() && which.count >= short_list) ||
                        tiles_short_lists();
  if (!in_tiles) return strategy::frontier;
  // Most tiles are touched: in their order they are read faster than they are found.
  const u64 many = graph_.edges() / 4;
  return which.count * longest_list_ > many && edges_of(which) > many ? strategy::tiled : strategy::tiled_frontier;
}

template <class Id>
std::vector<media::placed_array const*> graph_run<Id>::arrays() const {
  std::vector<media::placed_array const*> all{&edges_};
  if (weights_) all.push_back(&*weights_);
  return all;
}

template <class Id>
edge_lists<Id> graph_run<Id>::lists() const {
  edge_lists<Id> lists;
  lists.edges = edges_.view<Id>();
  lists.offsets = is_cpu() ? graph_.offsets().data() : offsets_.data();
  lists.traversed = words_.data() + traversed;
  lists.sectors = words_.data() + sectors;
  lists.bad_edge = words_.data() + bad_edge;
  lists.vertices = lists.lists = vertices();
  lists.asks_ahead = options_.placement != "host-cached";
  return lists;
}

/// Runs that keep all groups busy.
template <class Id>
u32 graph_run<Id>::vertices_a_run(u64 count) const {
  const u64 units = limits().units != 0 ? limits().units : on_.units();
  const u64 groups = is_cpu() ? 16 * units : 2 * units * cuda_blocks_per_unit * (cuda_block_threads / list_group_width);
  return static_cast<u32>(std::clamp<u64>(count / groups, 1, longest_run));
}

/// No more groups than the caches have lines for, on the SMs that modelled drives leave.
template <class Id>
launch_limits graph_run<Id>::limits(u64 lines_each) const {
  launch_limits most;
  if (media_) most.units = media_->units_left();
  for (media::placed_array const* array : arrays()) {
    if (array->cache() == nullptr) continue;
    const u64 sharing = media_ ? arrays().size() : 1;
    const u64 room = std::max<u64>(1, array->cache()->view().frames / (lines_each * sharing));
    most.groups = most.groups == 0 ? room : std::min(most.groups, room);
  }
  return most;
}

template <class Id>
void graph_run<Id>::check() {
  read_counts();
  edges_.check();
  if (weights_) weights_->check();
  if (incoming_) incoming_->edges.check();
  if (counted_[bad_edge] == 0) return;
  const u64 bad = copies_ ? copies_->find_bad_edge() : counted_[bad_edge];
  throw_bad_input("search", (walked_incoming_ ? incoming_->graph : graph_).edges_place().path,
                  "edge " + std::to_string(bad - 1) + " leads to no vertex of the graph: convert the graph again");
}

template <class Id>
void graph_run<Id>::begin_round(graph_cost& cost, std::string const& what, u64 size, u64 done, u64 of) {
  cost.level_sizes.push_back(size);
  if (options_.progress) options_.progress(what + " " + std::to_string(cost.level_sizes.size()), done, of);
  round_begun_ns_ = now_ns();
}

/// So far in the trial.
template <class Id>
u64 graph_run<Id>::moved_bytes() const {
  if (copies_) return copies_->bytes_copied() - copied_before_;
  if (is_resident()) return counted_[sectors] * sector_bytes;
  u64 bytes = 0;
  for (media::placed_array const* array : arrays()) bytes += array->stats().bytes_moved;
  for (cache_stats const& before : before_) bytes -= before.bytes_moved;
  return bytes;
}

template <class Id>
void graph_run<Id>::end_round(graph_cost& cost, char const* how) {
  cost.level_seconds.push_back(seconds_since(round_begun_ns_));
  cost.level_strategies.emplace_back(how != nullptr ? how : name_of(last_));
  if (!options_.level_traffic || (is_resident() && is_cpu() && !copies_)) return;
  const u64 moved = moved_bytes();
  cost.level_bytes.push_back(moved - std::exchange(moved_before_, moved));
}

template <class Id>
void graph_run<Id>::begin_trial(graph_cost& cost) {
  cost.level_sizes.clear();
  cost.level_seconds.clear();
  cost.level_strategies.clear();
  cost.level_bytes.clear();
  moved_before_ = 0;
  before_.clear();
  for (media::placed_array const* array : arrays()) {
    if (array->cache() != nullptr) before_.push_back(array->stats());
  }
  words_.write(std::vector<u64>(words, 0));
  counted_ = {};
  found_taken_ = 0;
  side_ = 0;
  listing_tiles_ = has_listed_tiles_ = false;
  for (tile_side& side : sides_) side.taken = 0;
  copied_before_ = copies_ ? copies_->bytes_copied() : 0;
  edges_.reset();
  if (weights_) weights_->reset();
  if (incoming_) incoming_->edges.reset();
  if (media_) media_->start();
  trial_begun_ns_ = now_ns();
}

template <class Id>
void graph_run<Id>::end_trial(graph_cost& cost) {
  on_.synchronize();
  cost.seconds = seconds_since(trial_begun_ns_);
  if (media_) media_->stop();
  cost.trial_seconds.push_back(cost.seconds);
  read_counts();
  cost.edges_traversed = counted_[traversed];
  cost.teps = static_cast<double>(cost.edges_traversed) / cost.seconds;
  cost.engine = copies_ ? "lists put together by " + std::to_string(copies_->threads()) + " threads" : edges_.engine();
  cost.hits = cost.misses = cost.joins = cost.fills = cost.prefetches = cost.evictions = cost.retries = cost.errors = 0;
  cost.bytes_asked = cost.bytes_moved = cost.edge_bytes = cost.frames = cost.metadata_bytes = 0;
  auto before = before_.begin();
  for (media::placed_array const* array : arrays()) {
    cost.edge_bytes += graph_.edges() * (array == &edges_ ? sizeof(Id) : sizeof(u32));
    if (array->cache() == nullptr) continue;
    line_cache const& cache = *array->cache();
    const cache_stats now = array->stats(), was = *before++;
    cost.hits += now.hits - was.hits;
    cost.misses += now.misses - was.misses;
    cost.joins += now.joins - was.joins;
    cost.fills += now.fills - was.fills;
    cost.prefetches += now.prefetches - was.prefetches;
    cost.evictions += now.evictions - was.evictions;
    cost.retries += now.retries - was.retries;
    cost.errors += now.errors - was.errors;
    cost.bytes_asked += now.bytes_asked - was.bytes_asked;
    cost.bytes_moved += now.bytes_moved - was.bytes_moved;
    if (!media_ || array == &edges_) {  // drives have one cache
      cost.frames += cache.view().frames;
      cost.metadata_bytes += cache.metadata_bytes();
    }
    cost.directory = media::name_of(cache.directory());
    cost.directory_bytes_per_tib = cache.directory_bytes_per_tib();
  }
  if (incoming_) cost.edge_bytes += graph_.edges() * sizeof(Id);
  if (is_resident()) {  // each edge that is looked at is read where it lies
    cost.bytes_asked = cost.edges_traversed * (sizeof(Id) + (weights_ ? sizeof(u32) : 0));
    (copies_ ? cost.bytes_moved : cost.sector_bytes) = moved_bytes();
    cost.directory = "none";
  }
  cost.amplification =
      cost.bytes_asked == 0 ? 0 : static_cast<double>(cost.bytes_moved) / static_cast<double>(cost.bytes_asked);
  cost.line_bytes = options_.line_bytes;
  cost.cache_bytes = cost.frames * options_.line_bytes;
  cost.offset_bytes = (vertices() + 1) * sizeof(u64);
  cost.vertex_bytes = std::exchange(vertex_bytes_, 0);
  cost.strategy = options_.strategy;
  cost.media = options_.media;
  cost.drives = media_ ? media_->modelled_drives() : 0;
  cost.media_bytes_per_second = media_ ? media_->bytes_per_second() : 0;
  cost.tile_bytes = first_vertices_.bytes() + other_tiles_.bytes();
  for (tile_side const& side : sides_) cost.tile_bytes += side.tiles.bytes() + side.seen.bytes();
  cost.tile_seconds = tile_seconds_;
}

template class graph_run<std::int32_t>;
template class graph_run<std::int64_t>;

}  // namespace penstock::analytics
