#include "libs/analytics/analytics.hpp"
#include "libs/analytics/components_bodies.hpp"
#include "libs/analytics/graph_run.hpp"
#include "libs/graph/analytics_reference.hpp"

#include <algorithm>

namespace penstock::analytics {
namespace {

constexpr u64 samples = 1024;

/// The parent that most of some vertices have. `drawn`: [samples].
template <class Id>
Id most_frequent(graph_run<Id>& run, forest<Id> const& trees, buffer<Id>& drawn) {
  run.walks.over(samples, sample_parents<Id>{trees, drawn.data(), samples, run.graph.vertices()});
  std::vector<Id> all(samples);
  drawn.read(all);
  std::sort(all.begin(), all.end());
  Id best = all[0];
  u64 most = 0;
  for (auto from = all.begin(); from != all.end();) {
    const auto to = std::upper_bound(from, all.end(), *from);
    if (static_cast<u64>(to - from) > most) best = *from;
    most = std::max(most, static_cast<u64>(to - from));
    from = to;
  }
  return best;
}

template <class Id>
void find_components(graph_run<Id>& run, bool last, components_result& result) {
  const u64 n = run.graph.vertices();
  buffer<Id> parents = run.account.template filled<Id>(n, 0);
  buffer<u64> components = run.account.template filled<u64>(1, 0);
  buffer<Id> drawn(run.graph.on().memory(), memory_kind::local, samples);
  const forest<Id> trees{parents.data()};
  run.walks.prepare_walks(merge_trees<Id>{});
  run.walks.prepare(plant_trees<Id>{}, flatten_trees<Id>{}, merge_neighbours<Id>{}, sample_parents<Id>{});
  run.account.trial(result, [&] {
    run.walks.over_vertices(plant_trees<Id>{trees, n});
    merge_trees<Id> merge{trees, !run.graph.folder().directed()};
    if (run.walks.is_automatic() && run.graph.reads_single_edges() && merge.both_ways) {
      run.account.begin_round(result, "neighbours", n, 0, 2);
      run.walks.over_edges_of_vertices(merge_neighbours<Id>{run.walks.lists(), trees});
      run.account.end_round(result, "neighbours");
      run.walks.over_vertices(flatten_trees<Id>{trees, components.data(), n});
      run.graph.write(components.data(), u64{0});
      merge.settled = most_frequent(run, trees, drawn);
    }
    run.account.begin_round(result, "edges", n, result.level_sizes.size(), result.level_sizes.size() + 1);
    run.walks.walk(merge);
    run.account.end_round(result);
    run.walks.over_vertices(flatten_trees<Id>{trees, components.data(), n});
  });
  if (!last) return;
  result.components = run.graph.read(components.data());
  std::vector<Id> found(n);
  parents.read(found);
  result.labels.assign(found.begin(), found.end());
  std::vector<u64> sizes(n, 0);
  for (const Id label : found) result.largest = std::max(result.largest, ++sizes[static_cast<u64>(label)]);
}

}  // namespace

components_result run_components(graph_options const& options) {
  return run_on_graph<components_result>(options,
                                         [&](auto const& graph, executor& on, auto id, u64 begun, components_result& result) {
                                           check_memory(options, graph, on, sizeof(id));
                                           graph_run<decltype(id)> run(options, graph, on);
                                           result.load_seconds = seconds_since(begun);
                                           for (u32 trial = 1; trial <= options.trials; ++trial) {
                                             find_components(run, trial == options.trials, result);
                                           }
                                           verify_result(options, graph, result, [&] {
                                             auto meter = run.account.meter("verify");
                                             return graph::verify_components(graph, result.labels, meter);
                                           });
                                         });
}

}  // namespace penstock::analytics
