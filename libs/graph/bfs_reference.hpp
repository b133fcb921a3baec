// Breadth-first search by one thread, slow and obvious, and the check of another search's answer against it by GAP's rules. The
// edges are read from the folder through a buffer, so memory is the depths, one bit per vertex, and a few MiB.
#pragma once

#include "libs/graph/graph_folder.hpp"

#include <span>
#include <string>
#include <vector>

namespace penstock::graph {

/// Depth of each vertex, by the number of edges from `source`; -1 where there is no path. int32, one per vertex.
/// Errors: bad_input when `source` is no vertex, or when an edge leads out of the graph; world when the edges cannot be read.
std::vector<std::int32_t> bfs_depths(graph_folder const& graph, u64 source, progress_meter& meter);

/// Whether `parents` (one per vertex; negative where the search did not arrive) is a breadth-first tree from `source`: the
/// source is its own parent; every other vertex's parent has an edge to it and is one level up; exactly the vertices that can
/// be reached have one. An empty string, or one sentence on the lowest vertex that breaks a rule. Errors: those of bfs_depths;
/// bad_input when there are not as many parents as vertices.
template <class Parent>
std::string verify_bfs(graph_folder const& graph, u64 source, std::span<Parent const> parents, progress_meter& meter);

extern template std::string verify_bfs(graph_folder const&, u64, std::span<std::int32_t const>, progress_meter&);
extern template std::string verify_bfs(graph_folder const&, u64, std::span<std::int64_t const>, progress_meter&);

}  // namespace penstock::graph
