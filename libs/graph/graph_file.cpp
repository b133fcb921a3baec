#include "libs/graph/graph_file.hpp"

#include "libs/graph/bel_family.hpp"
#include "libs/graph/folder_edges.hpp"
#include "libs/graph/gap_serialized.hpp"
#include "libs/graph/metis_graph.hpp"
#include "libs/graph/subway_csr.hpp"
#include "libs/graph/text_edge_list.hpp"
#include "penstock/host/error.hpp"

#include <filesystem>
#include <optional>

namespace penstock::graph {
namespace {

byte_input open_input(std::string const& path) { return byte_input(file::open(path)); }

std::string weights_of(weight_type type) {
  if (type == weight_type::none) return ", no weights";
  return type == weight_type::int32 ? ", weights int32" : ", weights float32";
}

graph_file binary(std::unique_ptr<binary_csr> csr) {
  graph_file opened{nullptr, csr->directed(), csr->remark(), 0};
  opened.reading = std::to_string(csr->edges()) + " edges in lists of neighbours" + weights_of(csr->weights());
  opened.edges = std::move(csr);
  return opened;
}

graph_file metis(byte_input input, unsigned threads, progress_meter& meter) {
  auto lists = std::make_unique<metis_graph>(std::move(input), threads, meter);
  graph_file opened{nullptr, false, {}, metis_graph::checked_per_mille};
  opened.reading = std::to_string(lists->vertices()) + " lists of neighbours" + weights_of(lists->weights());
  opened.edges = std::move(lists);
  return opened;
}

std::unique_ptr<binary_csr> open_bel(std::string const& path) {
  byte_input offsets = open_input(path + ".col"), targets = open_input(path + ".dst");
  std::optional<byte_input> weights;
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path + ".val", ignored))) weights = open_input(path + ".val");
  return std::make_unique<bel_family>(std::move(offsets), std::move(targets), std::move(weights));
}

graph_file text(byte_input input, text_dialect dialect, unsigned threads, progress_meter& meter, text_layout const& layout) {
  constexpr u64 block_bytes = u64{1} << 20;
  auto list = std::make_unique<text_edge_list>(std::move(input), dialect, threads, meter, block_bytes, layout);
  graph_file opened{nullptr, !list->undirected(), {}, list->done_per_mille()};
  opened.symmetrise = list->undirected();
  opened.names = list->names();
  opened.reading = list->reading();
  opened.edges = std::move(list);
  return opened;
}

graph_file folder(std::string const& path) {
  graph_folder const graph = graph_folder::open(path);
  graph_file opened = binary(std::make_unique<binary_csr>(layout_of(graph)));
  opened.wide_ids = graph.edges_place().item_bytes == 8;
  if (graph.has_names())
    each_line(graph.names_text(), [&](char const* at, char const* end) { opened.names.emplace_back(at, end); });
  if (!graph.reading().empty()) opened.reading = graph.reading();
  return opened;
}

}  // namespace

graph_file open_graph_file(std::string const& path, std::string const& format, unsigned threads, progress_meter& meter,
                           std::string const& name, text_layout const& layout) {
  unsigned const workers = worker_count(threads);
  auto const named = [&] { return byte_input(file::open(path), name.empty() ? path : name); };
  if (format == "folder") return folder(path);
  if (format == "el") return text(named(), text_dialect::el, workers, meter, layout);
  if (format == "wel") return text(named(), text_dialect::wel, workers, meter, layout);
  if (format == "gr") return text(named(), text_dialect::gr, workers, meter, layout);
  if (format == "graph") return metis(named(), workers, meter);
  if (format == "sg" || format == "wsg") return binary(std::make_unique<gap_serialized>(named(), format == "wsg"));
  if (format == "bcsr" || format == "bwcsr") return binary(std::make_unique<subway_csr>(named(), format == "bwcsr"));
  if (format == "bel") return binary(open_bel(path));
  throw_bad_input("open", path, "'" + format + "' is no format of graph files: see open_graph_file");
}

}  // namespace penstock::graph
