// A run of an algorithm over a stored graph: the graph opened on an executor, walks over its edges, and the account.
#pragma once

#include "libs/analytics/process_memory.hpp"
#include "libs/analytics/run_account.hpp"

namespace penstock::analytics {

/// For one thread. Outlives no reference that it is made of, and does not move: its parts refer to each other.
template <class Id>
struct graph_run {
  /// `weighted`: as opened_graph has it.
  graph_run(graph_options const& options, graph::graph_folder const& folder, executor& on, bool weighted = false)
      : graph(options, folder, on, weighted), walks(graph), account(graph, walks) {}
  graph_run(graph_run const&) = delete;

  opened_graph<Id> graph;
  edge_walker<Id> walks;
  run_account<Id> account;
};

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
