// Makes a folder appear all at once: it is filled under a temporary name beside its place and renamed when it is whole.
// Whatever stops the work (an error, a full disk, Ctrl-C) leaves nothing behind; what a killed process left is removed by the
// next one.
#pragma once

#include "libs/graph/csr_builder.hpp"
#include "libs/graph/graph_json.hpp"

#include <span>
#include <string>

namespace penstock::graph {

class folder_writer {
 public:
  /// Creates the temporary sibling of `target`, and the folders above it.
  /// Errors: bad_input when `target` exists; world when the place cannot be written.
  explicit folder_writer(std::string const& target);
  folder_writer(folder_writer const&) = delete;
  folder_writer& operator=(folder_writer const&) = delete;
  ~folder_writer();

  /// Where to write until commit().
  std::string const& path() const { return temporary_; }
  void add_file(std::string const& name, std::string const& bytes) const;
  /// Renames to `target`. If another process made the same folder meanwhile, that one stays and this one goes.
  void commit();

 private:
  std::string target_;
  std::string temporary_;
  int lock_ = -1;  ///< tells other processes that the temporary folder is in use
};

struct graph_origin {
  bool directed = true;
  std::string source{};                     ///< for graph.json
  std::span<std::string const> names = {};  ///< one per vertex, or none
  std::string reading{};                    ///< for graph.json
};

/// Builds the graph folder `target` from `source`: build_csr, names.txt, graph.json, in one commit.
/// Errors: those of build_csr and folder_writer; bad_input when the names are not as many as the vertices or hold a newline,
/// and, naming an edge, when not all of them go both ways in a graph that is not directed (nor symmetrised).
csr_counts write_graph(edge_source const& source, std::string const& target, graph_origin const& origin,
                       build_options const& options, progress_meter& meter, u64 progress_from = 0);

}  // namespace penstock::graph
