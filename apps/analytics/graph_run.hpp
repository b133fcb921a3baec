// What every algorithm over a stored graph has: its executor, its edges wherever they are, and the account of a run.
#pragma once

#include "apps/analytics/edge_lists.hpp"
#include "apps/analytics/placed_array.hpp"
#include "apps/analytics/process_memory.hpp"
#include "penstock/core/clock.hpp"

namespace penstock::apps {

inline double seconds_since(u64 start_ns) { return static_cast<double>(now_ns() - start_ns) * 1e-9; }

/// As asked; else one per core, as far as the cache has room for what they pin (at most half of its lines).
u32 cpu_threads(graph_options const& options);

/// `asked`, or a vertex drawn with a fixed seed among those that have edges. Throws bad_input for what is no vertex.
u64 choose_source(graph::graph_folder const& graph, std::optional<u64> asked);

/// Outlives no reference that it is made of. For one thread.
template <class Id>
class graph_run {
 public:
  /// `weighted`: weights are read beside the edges, and take half of the cache. Throws bad_input for a graph without them.
  graph_run(graph_options const& options, graph::graph_folder const& graph, executor& on, bool weighted = false);

  u64 vertices() const { return graph_.vertices(); }
  executor& on() const { return on_; }
  graph::graph_folder const& graph() const { return graph_; }

  /// Over `count` vertices, in runs that keep all groups busy.
  edge_lists<Id> lists(u64 count) const;
  template <class Weight>
  array_view<Weight> weights() const {
    return weights_->view<Weight>();
  }

  /// Launches a body that walks lists; throws what went wrong in it.
  template <class Body>
  void walk(Body const& body) {
    start(on_, body.lists.runs(), body, most_groups());
    check();
  }
  /// Launches one that looks at vertices alone.
  template <class Body>
  void over_vertices(Body const& body) {
    start(on_, ceil_div(vertices(), vertices_at_once), body);
    on_.synchronize();
  }

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
  void end_round(graph_cost& cost) const { cost.level_seconds.push_back(seconds_since(round_begun_ns_)); }

  /// Fills in what was counted, once a run of `seconds` is over.
  void account(graph_cost& cost, double seconds) const;

  graph::progress_meter meter(std::string const& what) const {
    return graph::progress_meter([this, what](u64 done, u64 total) {
      if (options_.progress) options_.progress(what, done, total);
    });
  }

 private:
  void check();
  u64 most_groups() const;
  std::vector<placed_array const*> arrays() const;

  graph_options const& options_;
  graph::graph_folder const& graph_;
  executor& on_;
  placed_array edges_;
  std::optional<placed_array> weights_;
  buffer<u64> offsets_;
  buffer<u64> words_;  ///< edges looked at; 1 + position of a bad edge
  u64 vertex_bytes_ = 0;
  u64 round_begun_ns_ = 0;
};

extern template class graph_run<std::int32_t>;
extern template class graph_run<std::int64_t>;

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;  // in graph_cuda.cu
#else
inline constexpr bool has_kernels = false;
#endif

/// Opens graph and executor, and calls job(graph, executor, Id{}, when this began, result) for the type of the graph's ids.
template <class Result, class Job>
Result run_on_graph(graph_options const& options, Job const& job) {
  const u64 begun = now_ns();
  reset_peak_memory();
  const auto on = open_executor(options.executor, cpu_threads(options), has_kernels);
  const auto graph = graph::graph_folder::open(options.graph);
  if (graph.vertices() == 0) throw_bad_input("search", graph.path(), "the graph has no vertices");
  Result result;
  result.executor = on->kind() == executor_kind::cuda ? "cuda" : "cpu";
  result.device = on->device();
  result.placement = options.placement;
  if (graph.edges_place().item_bytes == 4) {
    job(graph, *on, std::int32_t{}, begun, result);
  } else {
    job(graph, *on, std::int64_t{}, begun, result);
  }
  return result;
}

/// The last steps of a job: what the process took, and the verification, if it was asked for: a sentence, or nothing.
template <class Verify>
void verify_result(graph_options const& options, graph_cost& cost, Verify const& verify) {
  const process_memory memory = read_process_memory();
  cost.peak_rss_bytes = memory.peak_bytes;
  cost.file_rss_bytes = memory.file_bytes;
  if (!options.verify) return;
  const u64 begun = now_ns();
  cost.violation = verify();
  cost.verify_seconds = seconds_since(begun);
  cost.verified = cost.violation.empty();
}

}  // namespace penstock::apps
