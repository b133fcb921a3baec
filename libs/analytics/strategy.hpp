// The ways in which groups share out edges, by name.
#pragma once

#include "penstock/core/config.hpp"

#include <string>

namespace penstock::analytics {

/// libs/analytics/edge_walks.hpp and docs/GRAPHS.md say what each does.
enum class strategy : u8 { automatic, thread, merged, merged_aligned, transposed, coarsened, tiled, frontier, tiled_frontier };

struct walk_options {
  strategy how = strategy::automatic;
  /// transposed: the stride, vertices; coarsened: vertices of a group; tiled, tiled_frontier: edges of a tile. 0: chosen.
  u64 parameter = 0;
  bool search = false;  ///< tiled: a tile's first vertex is searched for, not looked up in a table
  bool sort = false;    ///< tiled_frontier: tiles are made unique by sorting them, not by a bit for each
};

/// "auto", "tiled", "transposed(64)", "tiled(512,search)", "tiled_frontier(sort)". Throws bad_input for what is none.
walk_options parse_strategy(std::string const& text);

char const* name_of(strategy how);

}  // namespace penstock::analytics
