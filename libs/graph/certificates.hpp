// Whether an answer is right, from one reading of the edges by all processors, without finding it again. What is told is only
// yes or no: bfs_reference.hpp and analytics_reference.hpp say what is wrong with an answer, by one thread.
#pragma once

#include "libs/graph/analytics_reference.hpp"

#include <span>

namespace penstock::graph {

/// Parents lead to the source along edges; and no edge leads from a vertex that has a parent to one that has none, or that lies
/// more than a level below.
template <class Parent>
bool is_breadth_first_tree(graph_folder const& graph, u64 source, std::span<Parent const> parents, progress_meter& meter);

/// Both ends of each edge have one label, labels are the smallest of their vertices, and these hang together.
bool are_components(graph_folder const& graph, std::vector<std::int64_t> const& labels, progress_meter& meter);

/// The sum of what one more iteration changes.
double rank_change(graph_folder const& graph, std::vector<double> const& ranks, rank_rules const& rules, progress_meter& meter);

/// No edge makes a way shorter, and each vertex but the source has an edge that makes its own, from a vertex that has. In the
/// arithmetic of Distance.
template <class Weight, class Distance>
bool are_distances(graph_folder const& graph, u64 source, std::vector<Distance> const& distances, progress_meter& meter);

extern template bool is_breadth_first_tree(graph_folder const&, u64, std::span<std::int32_t const>, progress_meter&);
extern template bool is_breadth_first_tree(graph_folder const&, u64, std::span<std::int64_t const>, progress_meter&);
extern template bool are_distances<std::int32_t>(graph_folder const&, u64, std::vector<std::int64_t> const&, progress_meter&);
extern template bool are_distances<float>(graph_folder const&, u64, std::vector<double> const&, progress_meter&);

/// Predecessors lead to the source, and each has an edge that makes the distance of the vertex.
template <class Weight, class Distance>
bool is_path_tree(graph_folder const& graph, u64 source, std::vector<Distance> const& distances,
                  std::vector<std::int64_t> const& predecessors, progress_meter& meter);

extern template bool is_path_tree<std::int32_t>(graph_folder const&, u64, std::vector<std::int64_t> const&,
                                                std::vector<std::int64_t> const&, progress_meter&);
extern template bool is_path_tree<float>(graph_folder const&, u64, std::vector<double> const&, std::vector<std::int64_t> const&,
                                         progress_meter&);

}  // namespace penstock::graph
