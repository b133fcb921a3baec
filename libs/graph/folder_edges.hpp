// The edges of a graph folder as a source of another one, and which of them go one way alone.
#pragma once

#include "libs/graph/binary_csr.hpp"
#include "libs/graph/graph_folder.hpp"

#include <string>

namespace penstock::graph {

/// For binary_csr. Errors: bad_input for a graph in no folder; world when its files cannot be opened.
csr_layout layout_of(graph_folder const& graph);

/// An edge that has no equal the other way round, for people: "3 -> 7 (weight 5)"; empty if there is none. Takes 16 bytes for
/// each vertex.
std::string one_way_edge(graph_folder const& graph, unsigned threads, progress_meter& meter);

/// Of a graph that says it is undirected. Reads all edges; 8 bytes for each vertex. (Not where it lies in no folder: what is
/// put elsewhere was made here.) Errors: bad_input naming an edge that goes one way alone; world.
void check_both_ways(graph_folder const& graph, unsigned threads, progress_meter& meter);

}  // namespace penstock::graph
