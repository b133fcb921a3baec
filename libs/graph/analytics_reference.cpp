#include "libs/graph/analytics_reference.hpp"

#include "libs/graph/certificates.hpp"
#include "libs/graph/number_text.hpp"
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
void sweep_all(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  graph.edges_place().item_bytes == 4 ? sweep<std::int32_t>(graph, meter, visit) : sweep<std::int64_t>(graph, meter, visit);
}

std::string label_of(u64 v, std::int64_t label) {
  return "vertex " + std::to_string(v) + " has label " + std::to_string(label);
}

/// Dijkstra's algorithm, with sums in `Sum`; `none`, which no path is as long as, where there is no path. All edges and weights
/// are in memory.
template <class Id, class Weight, class Sum>
std::vector<Sum> dijkstra(graph_folder const& graph, u64 source, Sum none, progress_meter& meter) {
  auto const offsets = graph.offsets();
  std::vector<u64> ends(graph.edges());
  sweep_all(graph, meter, [&](u64, u64 position, u64 to) { ends[position] = to; });
  edge_reader<Weight> reader(*graph.weights_place());
  auto const weights = reader.read(0, graph.edges(), false);
  std::vector<Sum> distances(graph.vertices(), none);
  using entry = std::pair<Sum, u64>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> waiting;
  distances[source] = 0;
  waiting.emplace(0, source);
  while (!waiting.empty()) {
    auto const [at, v] = waiting.top();
    waiting.pop();
    if (at > distances[v]) continue;
    for (u64 e = offsets[v]; e < offsets[v + 1]; ++e) {
      const Sum there = at + static_cast<Sum>(weights[e]);
      if (there >= distances[ends[e]]) continue;
      distances[ends[e]] = there;
      waiting.emplace(there, ends[e]);
    }
  }
  return distances;
}

template <class Weight, class Distance>
std::vector<Distance> true_distances(graph_folder const& graph, u64 source, Distance none, progress_meter& meter) {
  return graph.edges_place().item_bytes == 4 ? dijkstra<std::int32_t, Weight>(graph, source, none, meter)
                                             : dijkstra<std::int64_t, Weight>(graph, source, none, meter);
}

/// `no_path(d)`: whether d stands for none; among the distances that are wanted it is `none`.
template <class Distance, class NoPath>
std::string compare(std::vector<Distance> const& wanted, std::vector<Distance> const& found, Distance none,
                    NoPath const& no_path) {
  for (u64 v = 0; v < found.size(); ++v) {
    const bool there = wanted[v] != none;
    if (there ? found[v] == wanted[v] : no_path(found[v])) continue;
    return "vertex " + std::to_string(v) + " has distance " + (no_path(found[v]) ? "no path" : number_text(found[v])) +
           ", not " + (there ? number_text(wanted[v]) : std::string("no path"));
  }
  return {};
}

/// The first vertex whose predecessor is none, of those that a shortest path can take.
template <class Weight, class Distance, class NoPath>
std::string wrong_predecessor(graph_folder const& graph, u64 source, std::vector<Distance> const& distances,
                              std::vector<std::int64_t> const& predecessors, NoPath const& no_path, progress_meter& meter) {
  const u64 n = graph.vertices();
  edge_reader<Weight> weights(*graph.weights_place());
  std::vector<char> right(n, 0);
  right[source] = predecessors[source] == static_cast<std::int64_t>(source);
  sweep_all(graph, meter, [&](u64 v, u64 position, u64 to) {
    if (to == source || predecessors[to] != static_cast<std::int64_t>(v) || no_path(distances[v])) return;
    const auto length = static_cast<Distance>(weights.read(position, position + 1, true)[0]);
    if (distances[v] + length == distances[to]) right[to] = 1;
  });
  for (u64 v = 0; v < n; ++v) {
    if (no_path(distances[v]) ? predecessors[v] == -1 : right[v] != 0) continue;
    return "vertex " + std::to_string(v) + " has predecessor " + std::to_string(predecessors[v]) +
           ", which is not the vertex before it on a shortest path";
  }
  return "predecessors go round in a circle and do not lead to the source";
}

bool is_negative(std::int64_t distance) { return distance < 0; }
bool is_infinite(double distance) { return std::isinf(distance); }

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
  sweep_all(graph, meter, [&](u64 v, u64, u64 to) {
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
  if (std::isinf(change)) sweep_all(graph, meter, [](u64, u64, u64) {});  // throws for an edge that leads nowhere
  if (change <= rules.limit + rules.rounding) return {};
  return "one more iteration changes the ranks by " + number_text(change) + ", more than " + number_text(rules.limit);
}

std::string verify_distances(graph_folder const& graph, u64 source, std::vector<std::int64_t> const& distances,
                             progress_meter& meter) {
  check_length(graph, distances.size());
  if (are_distances<std::int32_t>(graph, source, distances, meter)) return {};
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  return compare(true_distances<std::int32_t>(graph, source, none, meter), distances, none, is_negative);
}

std::string verify_distances(graph_folder const& graph, u64 source, std::vector<double> const& distances,
                             progress_meter& meter) {
  check_length(graph, distances.size());
  if (are_distances<float>(graph, source, distances, meter)) return {};
  constexpr double none = std::numeric_limits<double>::infinity();
  return compare(true_distances<float>(graph, source, none, meter), distances, none, is_infinite);
}

std::string verify_predecessors(graph_folder const& graph, u64 source, std::vector<std::int64_t> const& distances,
                                std::vector<std::int64_t> const& predecessors, progress_meter& meter) {
  check_length(graph, predecessors.size());
  if (is_path_tree<std::int32_t>(graph, source, distances, predecessors, meter)) return {};
  return wrong_predecessor<std::int32_t>(graph, source, distances, predecessors, is_negative, meter);
}

std::string verify_predecessors(graph_folder const& graph, u64 source, std::vector<double> const& distances,
                                std::vector<std::int64_t> const& predecessors, progress_meter& meter) {
  check_length(graph, predecessors.size());
  if (is_path_tree<float>(graph, source, distances, predecessors, meter)) return {};
  return wrong_predecessor<float>(graph, source, distances, predecessors, is_infinite, meter);
}

}  // namespace penstock::graph
