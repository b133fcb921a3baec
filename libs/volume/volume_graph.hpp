// Graphs on a volume, opened where they lie.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/volume/volume_entry.hpp"

#include <memory>
#include <string>

namespace penstock::volumes {

/// Throws bad_input where the volume has no such graph.
graph::graph_folder open_volume_graph(std::shared_ptr<shared_volume> const& from, std::string const& entry,
                                      std::string const& name);

/// What a user calls a graph: "volume:ENTRY@MEMBER,...", or the path of a folder.
graph::graph_folder open_graph(std::string const& name);

}  // namespace penstock::volumes
