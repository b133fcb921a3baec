// Graph files by the name of their format: what to read them with, and what kind of graph is in them.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/graph/text_layout.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock::graph {

struct graph_file {
  std::unique_ptr<edge_source> edges{};
  bool directed = true;              ///< false: the file has each edge in both directions
  std::string remark{};              ///< what was wrong and could be put right, in one sentence
  u64 done_per_mille = 0;            ///< of the whole work, as the meter was told
  bool wide_ids = false;             ///< that it has int64 ids, though int32 would do
  bool symmetrise = false;           ///< that it lists each edge of an undirected graph at one end
  std::string reading{};             ///< what was taken as what, and how much, in words
  std::vector<std::string> names{};  ///< of the vertices, or none
};

/// Opens the file, or for "bel" the files that `path`.col and so on name.
/// format: "el", "wel", "gr", "graph", "sg", "wsg", "bel", "bcsr" or "bwcsr", or "folder" for a graph folder.
/// name: what people know a text file by; its path unless given. layout: of "el" and "wel".
/// Errors: those of the format's reader; bad_input for another format.
graph_file open_graph_file(std::string const& path, std::string const& format, unsigned threads, progress_meter& meter,
                           std::string const& name = {}, text_layout const& layout = {});

}  // namespace penstock::graph
