#include "libs/graph/incoming.hpp"

#include "libs/graph/folder_edges.hpp"
#include "libs/graph/folder_writer.hpp"
#include "penstock/host/error.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

namespace penstock::graph {
namespace {

std::string incoming_path(graph_folder const& graph) { return graph.path() + "/incoming"; }

class reversed_edges final : public edge_source {
 public:
  explicit reversed_edges(graph_folder const& graph) : edges_(without_weights(layout_of(graph))) {}

  u64 vertices() const override { return edges_.vertices(); }
  weight_type weights() const override { return weight_type::none; }
  u64 blocks() const override { return edges_.blocks(); }
  u64 held_bytes() const override { return edges_.held_bytes(); }
  void produce(u64 block, edge_sink const& sink) const override {
    std::vector<edge> turned;
    edges_.produce(block, [&](std::span<edge const> edges) {
      turned.clear();
      for (edge const& e : edges) turned.push_back({e.to, e.from, 0});
      sink(turned);
    });
  }

 private:
  static csr_layout without_weights(csr_layout layout) {
    layout.weights = weight_type::none;
    return layout;
  }

  binary_csr edges_;
};

}  // namespace

void write_incoming(graph_folder const& graph, build_options const& options, progress_meter& meter) {
  if (graph.edges_place().stored != nullptr)
    throw_bad_input("transpose", graph.path(), "it is in no folder: make its incoming lists in one, and import that");
  if (!graph.directed())
    throw_bad_input("transpose", graph.path(), "it has each edge both ways: its lists are those of incoming edges, too");
  if (has_incoming(graph)) return;
  build_options same = options;
  same.wide_ids = graph.edges_place().item_bytes == 8;
  graph_origin const origin{.directed = true, .source = "incoming edges of " + graph.source()};
  std::error_code ignored;
  if (std::filesystem::exists(incoming_path(graph), ignored))
    throw_bad_input("transpose", incoming_path(graph), "something else is there: remove it");
  try {
    write_graph(reversed_edges(graph), incoming_path(graph), origin, same, meter);
  } catch (error const&) {
    if (!has_incoming(graph)) throw;  // else somebody made it meanwhile
  }
}

bool has_incoming(graph_folder const& graph) {
  std::error_code ignored;
  return std::filesystem::exists(incoming_path(graph) + "/graph.json", ignored);
}

graph_folder open_incoming(graph_folder const& graph) {
  graph_folder incoming = graph_folder::open(incoming_path(graph));
  if (incoming.vertices() == graph.vertices() && incoming.edges() == graph.edges() &&
      incoming.edges_place().item_bytes == graph.edges_place().item_bytes)
    return incoming;
  throw_bad_input("open", incoming.path(),
                  "has " + std::to_string(incoming.vertices()) + " vertices and " + std::to_string(incoming.edges()) +
                      " edges, the graph around it " + std::to_string(graph.vertices()) + " and " +
                      std::to_string(graph.edges()) + ": remove this folder and ask for the transpose again");
}

}  // namespace penstock::graph
