// Graph files by the name of their format: what to read them with, and what kind of graph is in them.
#pragma once

#include "apps/graph/edge_source.hpp"
#include "apps/graph/parallel.hpp"

#include <memory>
#include <string>

namespace penstock::graph {

struct graph_file {
  std::unique_ptr<edge_source> edges{};
  bool directed = true;    ///< false: the file has each edge in both directions
  std::string remark{};    ///< what was wrong and could be put right, in one sentence
  u64 done_per_mille = 0;  ///< of the whole work, as the meter was told
};

/// Opens the file, or for "bel" the files that `path`.col and so on name.
/// format: "el", "wel", "gr", "graph", "sg", "wsg", "bel", "bcsr" or "bwcsr".
/// Errors: those of the format's reader; bad_input for another format.
graph_file open_graph_file(std::string const& path, std::string const& format, unsigned threads, progress_meter& meter);

}  // namespace penstock::graph
