#include "apps/graph/graph_file.hpp"

#include "apps/graph/bel_family.hpp"
#include "apps/graph/folder_edges.hpp"
#include "apps/graph/gap_serialized.hpp"
#include "apps/graph/metis_graph.hpp"
#include "apps/graph/subway_csr.hpp"
#include "apps/graph/text_edge_list.hpp"
#include "penstock/host/error.hpp"

#include <filesystem>
#include <optional>

namespace penstock::graph {
namespace {

/// What looking at all lines of a text file once is of the work.
constexpr u64 text_per_mille = 200;

byte_input open_input(std::string const& path) { return byte_input(file::open(path)); }

graph_file binary(std::unique_ptr<binary_csr> csr) {
  graph_file opened{nullptr, csr->directed(), csr->remark(), 0};
  opened.edges = std::move(csr);
  return opened;
}

std::unique_ptr<binary_csr> open_bel(std::string const& path) {
  byte_input offsets = open_input(path + ".col"), targets = open_input(path + ".dst");
  std::optional<byte_input> weights;
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path + ".val", ignored))) weights = open_input(path + ".val");
  return std::make_unique<bel_family>(std::move(offsets), std::move(targets), std::move(weights));
}

graph_file text(byte_input input, text_dialect dialect, unsigned threads, progress_meter& meter) {
  meter.phase(0, text_per_mille);
  return {std::make_unique<text_edge_list>(std::move(input), dialect, threads, meter), true, {}, text_per_mille};
}

std::vector<std::string> read_names(std::string const& path) {
  byte_input const in = open_input(path);
  std::string text(in.size(), '\0');
  in.read(0, std::as_writable_bytes(std::span(text)));
  std::vector<std::string> names;
  each_line(text, [&](char const* at, char const* end) { names.emplace_back(at, end); });
  return names;
}

graph_file folder(std::string const& path) {
  graph_folder const graph = graph_folder::open(path);
  graph_file opened = binary(std::make_unique<binary_csr>(layout_of(graph)));
  opened.wide_ids = graph.edges_place().item_bytes == 8;
  if (!graph.names_path().empty()) opened.names = read_names(graph.names_path());
  return opened;
}

}  // namespace

graph_file open_graph_file(std::string const& path, std::string const& format, unsigned threads, progress_meter& meter,
                           std::string const& name) {
  unsigned const workers = worker_count(threads);
  auto const named = [&] { return byte_input(file::open(path), name.empty() ? path : name); };
  if (format == "folder") return folder(path);
  if (format == "el") return text(named(), text_dialect::el, workers, meter);
  if (format == "wel") return text(named(), text_dialect::wel, workers, meter);
  if (format == "gr") return text(named(), text_dialect::gr, workers, meter);
  if (format == "graph")
    return {std::make_unique<metis_graph>(named(), workers, meter), false, {}, metis_graph::checked_per_mille};
  if (format == "sg" || format == "wsg") return binary(std::make_unique<gap_serialized>(open_input(path), format == "wsg"));
  if (format == "bcsr" || format == "bwcsr") return binary(std::make_unique<subway_csr>(open_input(path), format == "bwcsr"));
  if (format == "bel") return binary(open_bel(path));
  throw_bad_input("open", path, "'" + format + "' is no format of graph files: see open_graph_file");
}

}  // namespace penstock::graph
