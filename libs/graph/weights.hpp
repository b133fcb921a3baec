// What an algorithm demands of a graph's weights, checked before it runs, for all edges, and not for those alone that it meets.
#pragma once

#include "libs/graph/graph_folder.hpp"

namespace penstock::graph {

/// Reads all weights once, by all processors, wherever they lie; a process reads the same file once. Gives the largest, 0
/// without edges. REQUIRES: the graph has weights.
/// Errors: bad_input naming the first edge whose weight is negative, infinite or no number; world where they cannot be read.
double check_weights(graph_folder const& graph, std::string const& operation, progress_meter& meter);

/// Whether a path over all vertices, of edges of weight `largest`, has a length below 2^63.
bool sums_fit(double largest, u64 vertices);

}  // namespace penstock::graph
