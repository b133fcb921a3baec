#include "apps/graph/graph_file.hpp"

#include "apps/graph/bel_family.hpp"
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

graph_file text(std::string const& path, text_dialect dialect, unsigned threads, progress_meter& meter) {
  meter.phase(0, text_per_mille);
  return {std::make_unique<text_edge_list>(open_input(path), dialect, threads, meter), true, {}, text_per_mille};
}

}  // namespace

graph_file open_graph_file(std::string const& path, std::string const& format, unsigned threads, progress_meter& meter) {
  unsigned const workers = worker_count(threads);
  if (format == "el") return text(path, text_dialect::el, workers, meter);
  if (format == "wel") return text(path, text_dialect::wel, workers, meter);
  if (format == "gr") return text(path, text_dialect::gr, workers, meter);
  if (format == "graph")
    return {std::make_unique<metis_graph>(open_input(path), workers, meter), false, {}, metis_graph::checked_per_mille};
  if (format == "sg" || format == "wsg") return binary(std::make_unique<gap_serialized>(open_input(path), format == "wsg"));
  if (format == "bcsr" || format == "bwcsr") return binary(std::make_unique<subway_csr>(open_input(path), format == "bwcsr"));
  if (format == "bel") return binary(open_bel(path));
  throw_bad_input("open", path, "'" + format + "' is no format of graph files: see open_graph_file");
}

}  // namespace penstock::graph
