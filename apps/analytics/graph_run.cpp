#include "apps/analytics/graph_run.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace penstock::apps {
namespace {

/// Lines that the lanes of one group may wait for at once: the piece of a list that they read together, cut by a line's end.
constexpr u64 pins_per_group = 2;
/// Vertices that a group takes at once; a warp asks for the first lines of as many in one go.
constexpr u64 longest_run = 32;
constexpr u64 source_seed = 27491095;

u64 cache_share(graph_options const& options, bool weighted) {
  return weighted ? options.cache_bytes / 2 : options.cache_bytes;
}

graph::array_place const& weights_of(graph::graph_folder const& graph) {
  if (graph.weights_place()) return *graph.weights_place();
  throw_bad_input("search", graph.path(),
                  "its edges have no weights: convert a file that has some (.wel, .wsg, .mtx, .npz), or generate them");
}

}  // namespace

u32 cpu_threads(graph_options const& options) {
  if (options.threads != 0 || options.line_bytes == 0 || options.placement != "storage") return options.threads;
  const u64 room = std::max<u64>(1, options.cache_bytes / options.line_bytes / 2);
  return static_cast<u32>(std::min<u64>(std::max(1u, std::thread::hardware_concurrency()), room));
}

u64 choose_source(graph::graph_folder const& graph, std::optional<u64> asked) {
  if (asked) {
    if (*asked < graph.vertices()) return *asked;
    throw_bad_input(
        "search", graph.path(),
        "source " + std::to_string(*asked) + ": its vertices are numbered 0 to " + std::to_string(graph.vertices() - 1));
  }
  if (graph.edges() == 0) return 0;
  auto const offsets = graph.offsets();
  std::mt19937_64 random(source_seed);
  // An edge drawn at random would prefer large lists; a vertex drawn until it has edges does not (GAP's rule).
  for (u64 tries = 0; tries < 64 * graph.vertices(); ++tries) {
    const u64 v = random() % graph.vertices();
    if (offsets[v] != offsets[v + 1]) return v;
  }
  return static_cast<u64>(std::upper_bound(offsets.begin(), offsets.end(), u64{0}) - offsets.begin() - 1);
}

template <class Id>
graph_run<Id>::graph_run(graph_options const& options, graph::graph_folder const& graph, executor& on, bool weighted)
    : options_(options), graph_(graph), on_(on), edges_(on, graph.edges_place(), options, cache_share(options, weighted)),
      words_(on.memory(), memory_kind::local, 2) {
  if (weighted) weights_.emplace(on, weights_of(graph), options, cache_share(options, true));
  const bool cpu = on.kind() == executor_kind::cpu;
  for (placed_array const* array : arrays()) {
    if (array->cache() == nullptr) continue;
    array->cache()->check_pins(cpu ? on.units() : cuda_block_threads / list_group_width, cpu ? 1 : pins_per_group);
  }
  words_.write(std::vector<u64>(2, 0));
  if (!cpu) {
    offsets_ = {on.memory(), memory_kind::local, graph.vertices() + 1};
    offsets_.write(graph.offsets());
  }
}

template <class Id>
std::vector<placed_array const*> graph_run<Id>::arrays() const {
  std::vector<placed_array const*> all{&edges_};
  if (weights_) all.push_back(&*weights_);
  return all;
}

template <class Id>
edge_lists<Id> graph_run<Id>::lists(u64 count) const {
  const bool cpu = on_.kind() == executor_kind::cpu;
  const u64 groups = cpu ? 16 * on_.units() : 2 * on_.units() * cuda_blocks_per_unit * (cuda_block_threads / list_group_width);
  edge_lists<Id> lists;
  lists.edges = edges_.view<Id>();
  lists.offsets = cpu ? graph_.offsets().data() : offsets_.data();
  lists.traversed = words_.data();
  lists.bad_edge = words_.data() + 1;
  lists.vertices = vertices();
  lists.count = count;
  lists.run_vertices = static_cast<u32>(std::clamp<u64>(count / groups, 1, longest_run));
  lists.lines_ahead = cpu ? 32 : 8;
  return lists;
}

template <class Id>
u64 graph_run<Id>::most_groups() const {
  u64 most = 0;
  for (placed_array const* array : arrays()) {
    if (array->cache() == nullptr) continue;
    const u64 room = std::max<u64>(1, array->cache()->view().frames / (2 * pins_per_group));
    most = most == 0 ? room : std::min(most, room);
  }
  return most;
}

template <class Id>
void graph_run<Id>::check() {
  on_.synchronize();
  if (edges_.cache() != nullptr) edges_.cache()->check_faults();
  if (weights_ && weights_->cache() != nullptr) weights_->cache()->check_faults();
  const u64 bad = read(words_.data() + 1);
  if (bad == 0) return;
  throw_bad_input("search", graph_.edges_place().path,
                  "edge " + std::to_string(bad - 1) + " leads to no vertex of the graph: convert the graph again");
}

template <class Id>
void graph_run<Id>::begin_round(graph_cost& cost, std::string const& what, u64 size, u64 done, u64 of) {
  cost.level_sizes.push_back(size);
  if (options_.progress) options_.progress(what + " " + std::to_string(cost.level_sizes.size()), done, of);
  round_begun_ns_ = now_ns();
}

template <class Id>
void graph_run<Id>::account(graph_cost& cost, double seconds) const {
  cost.seconds = seconds;
  on_.memory().read(&cost.edges_traversed, words_.data(), sizeof(u64));
  cost.teps = static_cast<double>(cost.edges_traversed) / seconds;
  cost.engine = edges_.engine();
  for (placed_array const* array : arrays()) {
    cost.edge_bytes += graph_.edges() * (array == &edges_ ? sizeof(Id) : sizeof(u32));
    if (array->cache() == nullptr) continue;
    line_cache const& cache = *array->cache();
    const cache_stats stats = cache.stats(0);
    cost.hits += stats.hits;
    cost.misses += stats.misses;
    cost.joins += stats.joins;
    cost.fills += stats.fills;
    cost.prefetches += stats.prefetches;
    cost.evictions += stats.evictions;
    cost.retries += stats.retries;
    cost.errors += stats.errors;
    cost.bytes_asked += stats.bytes_asked;
    cost.bytes_moved += stats.bytes_moved;
    cost.frames += cache.view().frames;
    cost.metadata_bytes += cache.metadata_bytes();
    cost.directory = cache.directory() == directory_kind::direct ? "direct" : "set";
    cost.directory_bytes_per_tib = cache.directory_bytes_per_tib();
  }
  if (edges_.cache() == nullptr) {  // each edge that is looked at is read where it lies
    cost.bytes_asked = cost.edges_traversed * (sizeof(Id) + (weights_ ? sizeof(u32) : 0));
    cost.directory = "none";
  }
  cost.amplification =
      cost.bytes_asked == 0 ? 0 : static_cast<double>(cost.bytes_moved) / static_cast<double>(cost.bytes_asked);
  cost.line_bytes = options_.line_bytes;
  cost.cache_bytes = cost.frames * options_.line_bytes;
  cost.offset_bytes = (vertices() + 1) * sizeof(u64);
  cost.vertex_bytes = vertex_bytes_;
}

template <class Id>
void sort_vertices([[maybe_unused]] executor& on, Id* from, Id* sorted, u64 count, [[maybe_unused]] u64 vertices,
                   [[maybe_unused]] buffer<u8>& scratch) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) return sort_vertices_on_gpu(on, from, sorted, count, vertices, scratch);
#endif
  std::sort(from, from + count);
  std::copy(from, from + count, sorted);
}

template class graph_run<std::int32_t>;
template class graph_run<std::int64_t>;
template void sort_vertices(executor&, std::int32_t*, std::int32_t*, u64, u64, buffer<u8>&);
template void sort_vertices(executor&, std::int64_t*, std::int64_t*, u64, u64, buffer<u8>&);

}  // namespace penstock::apps
