#include "apps/bfs/bfs.hpp"

#include "apps/bfs/bfs_level.hpp"
#include "apps/bfs/process_memory.hpp"
#include "apps/graph/bfs_reference.hpp"
#include "apps/graph/graph_folder.hpp"
#include "penstock/host/stored_array.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace penstock::apps {

template <class Id>
void launch_level_cpu(executor& on, bfs_level<Id> const& level) {
  launch<bfs_group_width>(on, level.runs(), level);
}

template <class Id>
void sort_frontier_cpu(bfs_data<Id>& data, u64 count) {
  std::sort(data.next, data.next + count);
  std::swap(data.frontier, data.next);
}

namespace {

/// Lines that the lanes of one group may wait for at once: the piece of a list that they read together, cut by a line's end.
constexpr u64 pins_per_group = 2;
/// Vertices that a group takes at once; a warp asks for the first lines of as many in one go.
constexpr u64 longest_run = 32;
#if defined(PENSTOCK_HAS_CUDA)
constexpr bool has_kernels = true;  // in bfs_cuda.cu
#else
constexpr bool has_kernels = false;
#endif
constexpr u64 source_seed = 27491095;

double seconds_since(u64 start_ns) { return static_cast<double>(now_ns() - start_ns) * 1e-9; }

io_engine parse_engine(std::string const& name) {
  if (name == "auto") return io_engine::automatic;
  if (name == "io_uring") return io_engine::io_uring;
  if (name == "pread") return io_engine::pread;
  throw_bad_input("open", "engine " + name, "there is no such engine: choose auto, io_uring or pread");
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

/// As asked; else one per core, as far as the cache has room for what they pin (at most half of its lines).
u32 cpu_threads(bfs_options const& options) {
  if (options.threads != 0 || options.line_bytes == 0) return options.threads;
  const u64 room = std::max<u64>(1, options.cache_bytes / options.line_bytes / 2);
  return static_cast<u32>(std::min<u64>(std::max(1u, std::thread::hardware_concurrency()), room));
}

directory_kind parse_directory(std::string const& name) {
  if (name == "auto") return directory_kind::automatic;
  if (name == "direct") return directory_kind::direct;
  if (name == "set") return directory_kind::set_associative;
  throw_bad_input("search", "a graph", "directory '" + name + "': there is no such directory; choose one of auto, direct, set");
}

stored_array_options edge_options(bfs_options const& options) {
  stored_array_options edges;
  edges.cache.bytes = options.cache_bytes;
  edges.cache.line_bytes = options.line_bytes;
  edges.cache.directory = parse_directory(options.directory);
  edges.cache.queue_depth = options.queue_depth;
  edges.engine = parse_engine(options.engine);
  edges.direct = options.direct;
  edges.controller_threads = options.threads;
  return edges;
}

/// One search: everything it allocates, and the loop over levels.
template <class Id>
class search {
 public:
  search(bfs_options const& options, graph::graph_folder const& graph, executor& on)
      : options_(options), graph_(graph), on_(on), stored_(on, graph.edges_place().path, edge_options(options)) {
    const bool cpu = on.kind() == executor_kind::cpu;
    stored_.cache().check_pins(cpu ? on.units() : cuda_block_threads / bfs_group_width, cpu ? 1 : pins_per_group);
    level_.edges = options.in_memory ? load_edges() : stored_.view<Id>();
    level_.lines_ahead = cpu ? 32 : 8;
    allocate();
  }

  void run(u64 source, bfs_result& result) {
    const u64 start = now_ns();
    result.source = source;
    const Id first = static_cast<Id>(source);
    on_.memory().write(level_.data.parents + source, &first, sizeof first);
    on_.memory().write(level_.data.frontier, &first, sizeof first);
    u64 frontier = 1;
    while (frontier != 0) {
      result.level_sizes.push_back(frontier);
      result.reached += frontier;
      if (options_.progress)
        options_.progress("level " + std::to_string(result.level_sizes.size()), result.reached, graph_.vertices());
      const u64 before = now_ns();
      frontier = advance(frontier);
      result.level_seconds.push_back(seconds_since(before));
    }
    result.levels = result.level_sizes.size();
    result.seconds = seconds_since(start);
    on_.memory().read(&result.edges_traversed, level_.data.traversed, sizeof(u64));
    result.teps = static_cast<double>(result.edges_traversed) / result.seconds;
  }

  void report(bfs_result& result) const {
    const cache_stats stats = stored_.cache().stats(0);
    result.engine = stored_.engine();
    result.hits = stats.hits;
    result.misses = stats.misses;
    result.joins = stats.joins;
    result.fills = stats.fills;
    result.prefetches = stats.prefetches;
    result.evictions = stats.evictions;
    result.retries = stats.retries;
    result.errors = stats.errors;
    result.bytes_asked = stats.bytes_asked;
    result.bytes_moved = stats.bytes_moved;
    result.amplification =
        stats.bytes_asked == 0 ? 0 : static_cast<double>(stats.bytes_moved) / static_cast<double>(stats.bytes_asked);
    result.frames = stored_.cache().view().frames;
    result.line_bytes = options_.line_bytes;
    result.cache_bytes = result.frames * options_.line_bytes;
    result.metadata_bytes = stored_.cache().metadata_bytes();
    result.directory = stored_.cache().directory() == directory_kind::direct ? "direct" : "set";
    result.directory_bytes_per_tib = stored_.cache().directory_bytes_per_tib();
    result.edge_bytes = graph_.edges() * sizeof(Id);
    result.offset_bytes = (graph_.vertices() + 1) * sizeof(u64);
    result.vertex_bytes = parents_.bytes() + frontiers_.bytes();
  }

  std::string verify(u64 source) const {
    std::vector<Id> parents(graph_.vertices());
    parents_.read(parents);
    graph::progress_meter meter([this](u64 done, u64 total) {
      if (options_.progress) options_.progress("verify", done, total);
    });
    return graph::verify_bfs(graph_, source, std::span<Id const>(parents), meter);
  }

 private:
  array_view<Id> load_edges() {
    constexpr u64 piece = 1 << 22;
    const u64 count = graph_.edges();
    edges_ = {on_.memory(), memory_kind::local, std::max<u64>(count, 1)};
    graph::edge_reader<Id> reader(graph_);
    for (u64 first = 0; first < count; first += piece) {
      const auto part = reader.read(first, std::min(count, first + piece), true);
      on_.memory().write(edges_.data() + first, part.data(), part.size_bytes());
    }
    return {edges_.data(), count};
  }

  void allocate() {
    using enum memory_kind;
    memory_resource& memory = on_.memory();
    const u64 n = graph_.vertices();
    if (on_.kind() == executor_kind::cpu) {
      level_.data.offsets = graph_.offsets().data();
    } else {
      offsets_ = {memory, local, n + 1};
      offsets_.write(graph_.offsets());
      level_.data.offsets = offsets_.data();
    }
    parents_ = {memory, local, n};
    parents_.write(std::vector<Id>(n, Id{-1}));
    frontiers_ = {memory, local, 2 * n};
    words_ = {memory, local, 3};
    level_.data.parents = parents_.data();
    level_.data.frontier = frontiers_.data();
    level_.data.next = frontiers_.data() + n;
    level_.data.next_count = words_.data();
    level_.data.traversed = words_.data() + 1;
    level_.data.bad_edge = words_.data() + 2;
    level_.data.vertices = n;
  }

  /// Searches from the frontier; gives the size of the next.
  u64 advance(u64 frontier) {
    launch_level(frontier);
    stored_.cache().check_faults();
    u64 words[3];
    on_.memory().read(words, words_.data(), sizeof words);
    if (words[2] != 0) {
      throw_bad_input("search", graph_.edges_place().path,
                      "edge " + std::to_string(words[2] - 1) + " leads to no vertex of the graph: convert the graph again");
    }
    const u64 none = 0;
    on_.memory().write(words_.data(), &none, sizeof none);
    sort_frontier(words[0]);
    return words[0];
  }

  void launch_level(u64 frontier) {
    const bool cpu = on_.kind() == executor_kind::cpu;
    const u64 groups = cpu ? 16 * on_.units() : 2 * on_.units() * cuda_blocks_per_unit * (cuda_block_threads / bfs_group_width);
    level_.frontier_size = frontier;
    level_.run_vertices = static_cast<u32>(std::clamp<u64>(frontier / groups, 1, longest_run));
#if defined(PENSTOCK_HAS_CUDA)
    if (on_.kind() == executor_kind::cuda) {
      launch_level_cuda(on_, level_, stored_.cache().view().frames / (2 * pins_per_group));
      return;
    }
#endif
    launch_level_cpu(on_, level_);
  }

  void sort_frontier(u64 count) {
#if defined(PENSTOCK_HAS_CUDA)
    if (on_.kind() == executor_kind::cuda) {
      sort_frontier_cuda(on_, level_.data, count, scratch_);
      return;
    }
#endif
    sort_frontier_cpu(level_.data, count);
  }

  bfs_options const& options_;
  graph::graph_folder const& graph_;
  executor& on_;
  stored_array stored_;
  buffer<Id> edges_;
  buffer<u64> offsets_;
  buffer<Id> parents_;
  buffer<Id> frontiers_;
  buffer<u64> words_;
  buffer<u8> scratch_;
  bfs_level<Id> level_;
};

template <class Id>
bfs_result search_and_verify(bfs_options const& options, graph::graph_folder const& graph, executor& on, u64 start_ns) {
  bfs_result result;
  search<Id> job(options, graph, on);
  const u64 source = choose_source(graph, options.source);
  result.load_seconds = seconds_since(start_ns);
  job.run(source, result);
  job.report(result);
  const process_memory memory = read_process_memory();
  result.peak_rss_bytes = memory.peak_bytes;
  result.file_rss_bytes = memory.file_bytes;
  if (options.verify) {
    const u64 before = now_ns();
    result.violation = job.verify(source);
    result.verify_seconds = seconds_since(before);
    result.verified = result.violation.empty();
  }
  return result;
}

}  // namespace

bfs_result run_bfs(bfs_options const& options) {
  const u64 start = now_ns();
  reset_peak_memory();
  const auto on = open_executor(options.executor, cpu_threads(options), has_kernels);
  const auto graph = graph::graph_folder::open(options.graph);
  if (graph.vertices() == 0) throw_bad_input("search", graph.path(), "the graph has no vertices");
  bfs_result result = graph.edges_place().item_bytes == 4 ? search_and_verify<std::int32_t>(options, graph, *on, start)
                                                          : search_and_verify<std::int64_t>(options, graph, *on, start);
  result.executor = on->kind() == executor_kind::cuda ? "cuda" : "cpu";
  result.device = on->device();
  return result;
}

}  // namespace penstock::apps
