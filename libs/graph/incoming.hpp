// The lists of incoming edges of a directed graph: its transpose, as a graph folder of its own within the graph's folder. With
// it searches go on from below, and ranks are pulled.
#pragma once

#include "libs/graph/csr_builder.hpp"
#include "libs/graph/graph_folder.hpp"

namespace penstock::graph {

/// Makes it, all at once or not at all, unless it is there; without weights. Of the options threads, budget and limit count.
/// Errors: those of build_csr and folder_writer; bad_input for a graph that has each edge both ways.
void write_incoming(graph_folder const& graph, build_options const& options, progress_meter& meter);

/// Whether it is there.
bool has_incoming(graph_folder const& graph);

/// Errors: bad_input where it is that of a graph with other numbers of vertices or edges.
graph_folder open_incoming(graph_folder const& graph);

}  // namespace penstock::graph
