// What is decided before an algorithm begins: threads, the source, and whether there is room.
#pragma once

#include "libs/analytics/graph_options.hpp"
#include "libs/graph/graph_folder.hpp"
#include "penstock/executor/executor.hpp"

namespace penstock::analytics {

/// `asked`, or the trial's of those drawn with a fixed seed among the vertices that have edges enough. Throws bad_input for
/// what is no vertex, and for a rule that is none.
u64 choose_source(graph::graph_folder const& graph, std::optional<u64> asked, std::string const& rule, u32 trial);

/// Throws bad_input for a graph without weights.
graph::array_place const& weights_of(graph::graph_folder const& graph);

/// What an algorithm takes of a GPU's memory, bytes.
struct memory_need {
  u64 vertex_bytes = 0;  ///< offsets, and what the algorithm keeps of each vertex
  u64 edge_bytes = 0;    ///< edges and weights: all of them, or their cache

  u64 all() const { return vertex_bytes + edge_bytes; }
};

/// Of a graph, where the algorithm keeps so many bytes of each vertex. No more than there will be, and nearly that.
memory_need needed_memory(graph_options const& options, graph::graph_folder const& graph, u64 bytes_of_a_vertex, bool weighted);

/// Whether the lists of incoming edges fit beside what is there. A search can do without.
bool has_room_for_incoming(graph_options const& options, graph::graph_folder const& graph, executor& on);

/// A sentence that says how much is missing, or nothing.
std::string missing_memory(memory_need const& need, u64 free_bytes);

/// Throws bad_input with that sentence. On a CPU nothing is checked: what it has free is no bound there.
void check_memory(graph_options const& options, graph::graph_folder const& graph, executor& on, u64 bytes_of_a_vertex,
                  bool weighted = false);

}  // namespace penstock::analytics
