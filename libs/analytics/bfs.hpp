// Breadth-first search over a graph whose edges stay on storage: the main job of Penstock's command line.
#pragma once

#include "libs/analytics/graph_options.hpp"

namespace penstock::analytics {

struct bfs_options : graph_options {
  std::optional<u64> source;  ///< none: drawn with a fixed seed among the vertices that have edges
};

/// level_sizes: frontiers that were not empty.
struct bfs_result : graph_cost {
  u64 source = 0;
  u64 reached = 0;  ///< vertices, the source included
  u64 levels = 0;
  std::vector<std::int64_t> parents;  ///< of each vertex: the source's is itself; -1: not reached
};

/// Throws penstock::error: bad_input for options or a graph that cannot be; world when storage failed.
bfs_result run_bfs(bfs_options const& options);

}  // namespace penstock::analytics
