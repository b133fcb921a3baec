#include "libs/volume/volume_graph.hpp"

#include "penstock/host/error.hpp"

namespace penstock::volumes {
namespace {

[[noreturn]] void refuse_graph(std::string const& name, std::string const& entry) {
  throw_bad_input("open", name, entry + " is no graph: name one, or export it");
}

}  // namespace

graph::graph_folder open_volume_graph(std::shared_ptr<shared_volume> const& from, std::string const& entry,
                                      std::string const& name) {
  const entry_files files = files_of(from, entry);
  if (!files.contains("graph.json")) refuse_graph(name, entry);
  return graph::graph_folder::open(name, [files](std::string const& file) -> std::shared_ptr<graph::stored_bytes const> {
    const auto found = files.find(file);
    return found == files.end() ? nullptr : found->second;
  });
}

graph::graph_folder open_graph(std::string const& name) {
  if (!is_volume_name(name)) return graph::graph_folder::open(name);
  const volume_name parts = parse_volume_name(name);
  if (!parts.file.empty()) refuse_graph(name, parts.entry + "/" + parts.file);
  return open_volume_graph(open_shared(parts), parts.entry, name);
}

}  // namespace penstock::volumes
