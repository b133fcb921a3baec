// What graph.json says, to and from text.
#pragma once

#include "penstock/core/config.hpp"

#include <string>
#include <string_view>

namespace penstock::graph {

struct graph_facts {
  static constexpr u64 format = 1;  ///< "format": a reader refuses what it does not know

  u64 vertices = 0;
  u64 edges = 0;          ///< length of edges.npy
  bool directed = true;   ///< false: each edge is stored in both directions
  std::string source{};   ///< how the graph was made, for people
  std::string names{};    ///< file in the folder with one name per line and vertex; empty: none
  std::string reading{};  ///< which columns of the source were taken as what, and how many rows, for people

  friend bool operator==(graph_facts const&, graph_facts const&) = default;
};

std::string to_json(graph_facts const& facts);

/// One flat JSON object with at least format, vertices, edges and directed; other keys with simple values are ignored.
/// Errors: bad_input naming `name` and what is wrong.
graph_facts parse_graph_json(std::string_view text, std::string const& name);

}  // namespace penstock::graph
