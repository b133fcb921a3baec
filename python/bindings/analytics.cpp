// Algorithms over graph folders for Python. All release the interpreter while they work; Ctrl-C stops them between two rounds.
#include "libs/analytics/analytics.hpp"
#include "libs/analytics/bfs.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

namespace penstock::analytics {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

/// What every algorithm takes, by the names of graph_options. `progress`: (what, done, total) or None.
template <class Options>
Options options_of(nb::dict const& given, nb::object const& progress) {
  Options options;
  const auto take = [&]<class T>(char const* name, T& to) { to = nb::cast<T>(given[name]); };
  take("path", options.graph);
  take("placement", options.placement);
  take("strategy", options.strategy);
  take("cache", options.cache_bytes);
  take("line", options.line_bytes);
  take("directory", options.directory);
  take("executor", options.executor);
  take("engine", options.engine);
  take("ablate", options.ablate);
  take("direct", options.direct);
  take("threads", options.threads);
  take("queues", options.queues);
  take("queue_depth", options.queue_depth);
  take("media", options.media);
  take("drives", options.drives);
  take("media_place", options.media_place);
  take("layout", options.layout);
  take("server_sms", options.server_units);
  take("trials", options.trials);
  take("sources", options.sources);
  take("level_traffic", options.level_traffic);
  take("verify", options.verify);
  // Also where nobody watches: Ctrl-C stops a run between two rounds.
  options.progress = [progress](std::string const& what, u64 done, u64 total) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
  return options;
}

/// A negative source: none.
std::optional<u64> source_of(std::int64_t source) {
  return source < 0 ? std::nullopt : std::optional<u64>(static_cast<u64>(source));
}

nb::dict dict_of(graph_cost const& r) {
  nb::dict d;
  d["edges_traversed"] = r.edges_traversed;
  d["seconds"] = r.seconds;
  d["teps"] = r.teps;
  d["trial_seconds"] = r.trial_seconds;
  d["trial_sources"] = r.trial_sources;
  d["verified"] = r.verified ? nb::object(nb::bool_(*r.verified)) : nb::object(nb::none());
  d["violation"] = r.violation;
  d["executor"] = r.executor;
  d["device"] = r.device;
  d["engine"] = r.engine;
  d["placement"] = r.placement;
  d["strategy"] = r.strategy;
  d["media"] = r.media;
  d["drives"] = r.drives;
  d["media_bytes_per_second"] = r.media_bytes_per_second;
  d["hits"] = r.hits;
  d["misses"] = r.misses;
  d["joins"] = r.joins;
  d["fills"] = r.fills;
  d["prefetches"] = r.prefetches;
  d["evictions"] = r.evictions;
  d["retries"] = r.retries;
  d["errors"] = r.errors;
  d["bytes_asked"] = r.bytes_asked;
  d["bytes_moved"] = r.bytes_moved;
  d["amplification"] = r.amplification;
  d["sector_bytes"] = r.sector_bytes;
  d["frames"] = r.frames;
  d["line_bytes"] = r.line_bytes;
  d["cache_bytes"] = r.cache_bytes;
  d["metadata_bytes"] = r.metadata_bytes;
  d["directory"] = r.directory;
  d["directory_bytes_per_tib"] = r.directory_bytes_per_tib;
  d["edge_bytes"] = r.edge_bytes;
  d["offset_bytes"] = r.offset_bytes;
  d["vertex_bytes"] = r.vertex_bytes;
  d["tile_bytes"] = r.tile_bytes;
  d["tile_seconds"] = r.tile_seconds;
  d["load_seconds"] = r.load_seconds;
  d["verify_seconds"] = r.verify_seconds;
  d["level_sizes"] = r.level_sizes;
  d["level_seconds"] = r.level_seconds;
  d["level_strategies"] = r.level_strategies;
  d["level_bytes"] = r.level_bytes;
  d["peak_rss_bytes"] = r.peak_rss_bytes;
  d["file_rss_bytes"] = r.file_rss_bytes;
  return d;
}

/// Becomes NumPy's, without a copy.
template <class T>
nb::object array_of(std::vector<T>&& values) {
  auto* const owned = std::make_unique<std::vector<T>>(std::move(values)).release();
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

nb::dict bfs(nb::dict const& given, std::int64_t source, nb::object const& progress) {
  auto options = options_of<bfs_options>(given, progress);
  options.source = source_of(source);
  bfs_result result;
  {
    const nb::gil_scoped_release unlocked;
    result = run_bfs(options);
  }
  nb::dict d = dict_of(result);
  d["source"] = result.source;
  d["reached"] = result.reached;
  d["levels"] = result.levels;
  d["parents"] = array_of(std::move(result.parents));
  return d;
}

nb::dict components(nb::dict const& given, nb::object const& progress) {
  const auto options = options_of<graph_options>(given, progress);
  components_result result;
  {
    const nb::gil_scoped_release unlocked;
    result = run_components(options);
  }
  nb::dict d = dict_of(result);
  d["components"] = result.components;
  d["largest"] = result.largest;
  d["labels"] = array_of(std::move(result.labels));
  return d;
}

/// One number for each vertex, or None.
std::vector<double> numbers_of(nb::object const& given) {
  if (given.is_none()) return {};
  const auto array = nb::cast<nb::ndarray<double const, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(given);
  return {array.data(), array.data() + array.size()};
}

nb::dict pagerank(nb::dict const& given, double damping, double tolerance, u32 iterations, bool dangling, bool wide,
                  bool weighted, nb::object const& teleport, nb::object const& start, nb::object const& dangling_goes,
                  nb::object const& progress) {
  auto options = options_of<pagerank_options>(given, progress);
  options.damping = damping;
  options.tolerance = tolerance;
  options.iterations = iterations;
  options.dangling = dangling;
  options.wide = wide;
  options.weighted = weighted;
  options.teleport = numbers_of(teleport);
  options.start = numbers_of(start);
  options.dangling_goes = numbers_of(dangling_goes);
  pagerank_result result;
  {
    const nb::gil_scoped_release unlocked;
    result = run_pagerank(options);
  }
  nb::dict d = dict_of(result);
  d["iterations"] = result.iterations;
  d["change"] = result.change;
  d["converged"] = result.converged;
  d["ranks"] = std::visit([](auto& ranks) { return array_of(std::move(ranks)); }, result.ranks);
  return d;
}

nb::dict sssp(nb::dict const& given, std::int64_t source, double delta, bool parents, bool round_vertices,
              nb::object const& progress) {
  auto options = options_of<paths_options>(given, progress);
  options.source = source_of(source);
  options.delta = delta;
  options.parents = parents;
  options.round_vertices = round_vertices;
  paths_result result;
  {
    const nb::gil_scoped_release unlocked;
    result = run_shortest_paths(options);
  }
  nb::dict d = dict_of(result);
  d["source"] = result.source;
  d["reached"] = result.reached;
  d["delta"] = result.delta;
  d["farthest"] = result.farthest;
  d["distances"] = std::visit([](auto& all) { return array_of(std::move(all)); }, result.distances);
  d["predecessors"] = parents ? array_of(std::move(result.predecessors)) : nb::none();
  d["round_vertices"] = round_vertices ? array_of(std::move(result.round_vertices)) : nb::none();
  return d;
}

}  // namespace

void bind_analytics(nb::module_& m) {
  m.def("bfs", &bfs, "options"_a, "source"_a, "progress"_a.none());
  m.def("components", &components, "options"_a, "progress"_a.none());
  m.def("pagerank", &pagerank, "options"_a, "damping"_a, "tolerance"_a, "iterations"_a, "dangling"_a, "wide"_a, "weighted"_a,
        "teleport"_a.none(), "start"_a.none(), "dangling_goes"_a.none(), "progress"_a.none());
  m.def("sssp", &sssp, "options"_a, "source"_a, "delta"_a, "parents"_a, "round_vertices"_a, "progress"_a.none());
}

}  // namespace penstock::analytics
