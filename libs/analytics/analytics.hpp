// Connected components, PageRank and shortest paths over a graph whose edges lie on storage, in host memory or in HBM.
#pragma once

#include "libs/analytics/graph_options.hpp"

#include <variant>

namespace penstock::analytics {

struct components_result : graph_cost {
  u64 components = 0;
  u64 largest = 0;                   ///< vertices
  std::vector<std::int64_t> labels;  ///< of each vertex: the smallest vertex of its component
};

/// The weakly connected ones. Throws penstock::error as run_bfs.
components_result run_components(graph_options const& options);

struct pagerank_options : graph_options {
  double damping = 0.85;
  double tolerance = 1e-4;  ///< of the sum of |change| in one iteration
  u32 iterations = 20;      ///< at most (GAP's limit)
  bool dangling = false;    ///< the rank of vertices without edges goes to others (NetworkX, Graphalytics); GAP lets it go
  bool wide = false;        ///< float64 instead of float32
  bool weighted = false;    ///< edges pass ranks on by their weights, of weights.npy, and not in equal parts
  /// A number of 0 or more for each vertex, scaled to a sum of 1 here; empty: the same for all. Where ranks begin anew, where
  /// they begin at first, and what vertices without edges give to (empty: as `teleport`).
  std::vector<double> teleport, start, dangling_goes;
};

/// A round of level_sizes is an iteration. Not converged: the last iteration changed `tolerance` or more.
struct pagerank_result : graph_cost {
  u64 iterations = 0;
  double change = 0;  ///< of the last one
  bool converged = false;
  std::variant<std::vector<float>, std::vector<double>> ranks;
};

pagerank_result run_pagerank(pagerank_options const& options);

struct paths_options : graph_options {
  std::optional<u64> source;    ///< none: as for run_bfs
  double delta = 0;             ///< how far the threshold rises; 0: chosen by weights and degrees
  bool parents = false;         ///< predecessors are wanted, too: one more walk over the edges
  bool round_vertices = false;  ///< those of each round are wanted
};

/// Rounds are frontiers.
struct paths_result : graph_cost {
  u64 source = 0;
  u64 reached = 0;   ///< vertices, the source included
  double delta = 0;  ///< the one that was taken
  double farthest = 0;
  /// int32 weights: the distances, -1 where there is no path. float32: sums in double, infinity there.
  std::variant<std::vector<std::int64_t>, std::vector<double>> distances;
  /// Of each vertex the one before it on a shortest path; the source's is itself, -1: no path. Empty unless asked for.
  std::vector<std::int64_t> predecessors;
  /// Of the rounds, one after the other, as many as level_sizes says; parents have rounds of their own. Empty unless asked for.
  std::vector<std::int64_t> round_vertices;
};

/// Weights: of weights.npy. Throws bad_input, before any edge is walked, for a graph without them or with one that is negative,
/// infinite or no number.
paths_result run_shortest_paths(paths_options const& options);

}  // namespace penstock::analytics
