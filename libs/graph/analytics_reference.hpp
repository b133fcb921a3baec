// Checks of what the algorithms over graphs found, by GAP's rules (Beamer, Asanovic, Patterson, "The GAP Benchmark Suite",
// 2015, section 4). What holds is found by all processors (certificates.hpp); only where it does not, one thread finds out,
// slow and obvious, what is wrong. Each gives an empty string, or one sentence on what is wrong. Errors: bad_input for an edge
// that leads out of the graph, or results of another length than the graph has vertices; world when the edges cannot be read.
#pragma once

#include "libs/graph/graph_folder.hpp"

#include <span>
#include <vector>

namespace penstock::graph {

/// labels: of each vertex the smallest vertex of its weakly connected component.
std::string verify_components(graph_folder const& graph, std::vector<std::int64_t> const& labels, progress_meter& meter);

struct rank_rules {
  double damping = 0.85;
  bool dangling = false;                    ///< what vertices without edges have goes to others
  double limit = 1e-4;                      ///< of the sum of what one more iteration changes
  bool weighted = false;                    ///< an edge counts by its weight
  double rounding = 1e-6;                   ///< beyond that limit: float32 ranks are exact to 2^-24 each, and add up to about 1
  std::span<double const> teleport{};       ///< [vertices], of sum 1: where ranks begin anew. Empty: anywhere
  std::span<double const> dangling_goes{};  ///< [vertices], of sum 1: what has no edges gives to these. Empty: as teleport
};

std::string verify_pagerank(graph_folder const& graph, std::vector<double> const& ranks, rank_rules const& rules,
                            progress_meter& meter);

/// Against Dijkstra's, whose sums are int64 or double as these are: equal. -1, or infinity, where there is no path.
std::string verify_distances(graph_folder const& graph, u64 source, std::vector<std::int64_t> const& distances,
                             progress_meter& meter);
std::string verify_distances(graph_folder const& graph, u64 source, std::vector<double> const& distances,
                             progress_meter& meter);

/// Of distances that are right: each predecessor has an edge that makes the distance, and leads to the source; the source's is
/// itself, and where there is no path it is -1.
std::string verify_predecessors(graph_folder const& graph, u64 source, std::vector<std::int64_t> const& distances,
                                std::vector<std::int64_t> const& predecessors, progress_meter& meter);
std::string verify_predecessors(graph_folder const& graph, u64 source, std::vector<double> const& distances,
                                std::vector<std::int64_t> const& predecessors, progress_meter& meter);

}  // namespace penstock::graph
