#include "apps/graph/analytics_reference.hpp"

#include "apps/graph/certificates.hpp"
#include "penstock/host/error.hpp"

#include <cmath>
#include <limits>
#include <queue>

namespace penstock::graph {
namespace {

void check_length(graph_folder const& graph, u64 found) {
  if (found == graph.vertices()) return;
  throw_bad_input("verify", graph.path(),
                  std::to_string(found) + " results for " + std::to_string(graph.vertices()) + " vertices: give one for each");
}

/// Calls visit(v, position, to) for every edge, in the order of the file.
template <class Id, class Visit>
void sweep(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  auto const offsets = graph.offsets();
  edge_reader<Id> edges(graph);
  for (u64 v = 0; v < graph.vertices(); ++v) {
    auto const list = edges.read(offsets[v], offsets[v + 1], true);
    for (u64 k = 0; k < list.size(); ++k) {
      auto const to = static_cast<u64>(list[k]);
      if (to >= graph.vertices())
        throw_bad_input("verify", graph.edges_place().path,
                        "edge " + std::to_string(offsets[v] + k) + " points to vertex " + std::to_string(list[k]) +
                            ", the graph has " + std::to_string(graph.vertices()) + ": convert the graph again");
      visit(v, offsets[v] + k, to);
    }
    if ((v & 0xffff) == 0) meter.report(v, graph.vertices());
  }
}

template <class Visit>
void for_each_edge(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  graph.edges_place().item_bytes == 4 ? sweep<std::int32_t>(graph, meter, visit) : sweep<std::int64_t>(graph, meter, visit);
}

std::string label_of(u64 v, std::int64_t label) {
  return "vertex " + std::to_string(v) + " has label " + std::to_string(label);
}

/// Dijkstra's algorithm in double (exact for sums of int32 below 2^53); infinity where there is no path. All edges and weights
/// are in memory.
template <class Id, class Weight>
std::vector<double> dijkstra(graph_folder const& graph, u64 source, progress_meter& meter) {
  auto const offsets = graph.offsets();
  std::vector<u64> ends(graph.edges());
  for_each_edge(graph, meter, [&](u64, u64 position, u64 to) { ends[position] = to; });
  edge_reader<Weight> reader(*graph.weights_place());
  auto const weights = reader.read(0, graph.edges(), false);
  std::vector<double> distances(graph.vertices(), std::numeric_limits<double>::infinity());
  using entry = std::pair<double, u64>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> waiting;
  distances[source] = 0;
  waiting.emplace(0, source);
  while (!waiting.empty()) {
    auto const [at, v] = waiting.top();
    waiting.pop();
    if (at > distances[v]) continue;
    for (u64 e = offsets[v]; e < offsets[v + 1]; ++e) {
      const double there = at + static_cast<double>(weights[e]);
      if (there >= distances[ends[e]]) continue;
      distances[ends[e]] = there;
      waiting.emplace(there, ends[e]);
    }
  }
  return distances;
}

template <class Weight>
std::vector<double> true_distances(graph_folder const& graph, u64 source, progress_meter& meter) {
  return graph.edges_place().item_bytes == 4 ? dijkstra<std::int32_t, Weight>(graph, source, meter)
                                             : dijkstra<std::int64_t, Weight>(graph, source, meter);
}

/// `none`: what stands for no path; `error`: relative.
template <class Distance, class None>
std::string compare(std::vector<double> const& wanted, std::vector<Distance> const& found, None const& none, double error) {
  for (u64 v = 0; v < found.size(); ++v) {
    const bool there = !std::isinf(wanted[v]);
    const double at = static_cast<double>(found[v]);
    const std::string told = none(found[v]) ? "no path" : std::to_string(found[v]);
    if (there == none(found[v]) || (there && std::abs(at - wanted[v]) > error * wanted[v]))
      return "vertex " + std::to_string(v) + " has distance " + told + ", not " +
             (there ? std::to_string(wanted[v]) : std::string("no path"));
  }
  return {};
}

}  // namespace

std::string verify_components(graph_folder const& graph, std::vector<std::int64_t> const& labels, progress_meter& meter) {
  check_length(graph, labels.size());
  if (are_components(graph, labels, meter)) return {};
  // Both ends of an edge have one label; a label is its own; and the vertices of one label hang together.
  std::string wrong;
  std::vector<u64> parent(labels.size());
  for (u64 v = 0; v < parent.size(); ++v) parent[v] = v;
  const auto root = [&](u64 v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for_each_edge(graph, meter, [&](u64 v, u64, u64 to) {
    if (wrong.empty() && labels[v] != labels[to])
      wrong = label_of(v, labels[v]) + ", and its neighbour " + std::to_string(to) + " has " + std::to_string(labels[to]);
    const u64 a = root(v), b = root(to);
    parent[std::max(a, b)] = std::min(a, b);
  });
  if (!wrong.empty()) return wrong;
  for (u64 v = 0; v < labels.size(); ++v)
    if (labels[v] != static_cast<std::int64_t>(root(v)))
      return label_of(v, labels[v]) + ", not that of the smallest vertex of its component, " + std::to_string(root(v));
  return {};
}

std::string verify_pagerank(graph_folder const& graph, std::vector<double> const& ranks, rank_rules const& rules,
                            progress_meter& meter) {
  check_length(graph, ranks.size());
  for (u64 v = 0; v < ranks.size(); ++v) {
    if (!(ranks[v] >= 0)) return "vertex " + std::to_string(v) + " has rank " + std::to_string(ranks[v]);
  }
  const double change = rank_change(graph, ranks, rules, meter);
  if (std::isinf(change)) for_each_edge(graph, meter, [](u64, u64, u64) {});  // tells of an edge that leads nowhere
  // float32 ranks are exact to 2^-24 each, and add up to about 1.
  if (change <= rules.limit + 1e-6) return {};
  return "one more iteration changes the ranks by " + std::to_string(change) + ", more than " + std::to_string(rules.limit);
}

std::string verify_distances(graph_folder const& graph, u64 source, std::vector<std::int64_t> const& distances,
                             progress_meter& meter) {
  check_length(graph, distances.size());
  if (are_distances<std::int32_t>(graph, source, distances, meter)) return {};
  return compare(true_distances<std::int32_t>(graph, source, meter), distances, [](std::int64_t at) { return at < 0; }, 0);
}

std::string verify_distances(graph_folder const& graph, u64 source, std::vector<float> const& distances,
                             progress_meter& meter) {
  check_length(graph, distances.size());
  if (are_distances<float>(graph, source, distances, meter)) return {};
  return compare(true_distances<float>(graph, source, meter), distances, [](float at) { return std::isinf(at); }, 1e-4);
}

}  // namespace penstock::graph
