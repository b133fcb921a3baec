// Checks of what the algorithms over graphs found, by GAP's rules (Beamer, Asanovic, Patterson, "The GAP Benchmark Suite",
// 2015, section 4). What holds is found by all processors (certificates.hpp); only where it does not, one thread finds out,
// slow and obvious, what is wrong. Each gives an empty string, or one sentence on what is wrong. Errors: bad_input for an edge
// that leads out of the graph, or results of another length than the graph has vertices; world when the edges cannot be read.
#pragma once

#include "apps/graph/graph_folder.hpp"

#include <vector>

namespace penstock::graph {

/// labels: of each vertex the smallest vertex of its weakly connected component.
std::string verify_components(graph_folder const& graph, std::vector<std::int64_t> const& labels, progress_meter& meter);

struct rank_rules {
  double damping = 0.85;
  bool dangling = false;  ///< what vertices without edges have goes to all
  double limit = 1e-4;    ///< of the sum of what one more iteration changes
};

std::string verify_pagerank(graph_folder const& graph, std::vector<double> const& ranks, rank_rules const& rules,
                            progress_meter& meter);

/// Against Dijkstra's. int32 weights: equal, -1 where there is no path; float32: within 1e-4 of the distance, infinity there.
std::string verify_distances(graph_folder const& graph, u64 source, std::vector<std::int64_t> const& distances,
                             progress_meter& meter);
std::string verify_distances(graph_folder const& graph, u64 source, std::vector<float> const& distances, progress_meter& meter);

}  // namespace penstock::graph
