#include "apps/analytics/analytics.hpp"
#include "apps/analytics/components_bodies.hpp"
#include "apps/analytics/graph_run.hpp"
#include "apps/graph/analytics_reference.hpp"

#include <algorithm>

namespace penstock::apps {
namespace {

template <class Id>
void find_components(graph_run<Id>& run, components_result& result) {
  const u64 n = run.vertices();
  buffer<Id> parents = run.template filled<Id>(n, 0);
  buffer<u64> components = run.template filled<u64>(1, 0);
  const forest<Id> trees{parents.data()};
  const u64 begun = now_ns();
  run.begin_round(result, "edges", n, 0, 1);
  run.over_vertices(plant_trees<Id>{trees, n});
  run.walk(merge_trees<Id>{run.lists(n), trees, !run.graph().directed()});
  run.over_vertices(flatten_trees<Id>{trees, components.data(), n});
  run.end_round(result);
  run.account(result, seconds_since(begun));
  result.components = run.read(components.data());
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
                                           graph_run<decltype(id)> run(options, graph, on);
                                           result.load_seconds = seconds_since(begun);
                                           find_components(run, result);
                                           verify_result(options, result, [&] {
                                             auto meter = run.meter("verify");
                                             return graph::verify_components(graph, result.labels, meter);
                                           });
                                         });
}

}  // namespace penstock::apps
