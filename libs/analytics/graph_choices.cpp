#include "libs/analytics/graph_choices.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <random>

namespace penstock::analytics {
namespace {

constexpr u64 source_seed = 27491095;

}  // namespace

graph::array_place const& weights_of(graph::graph_folder const& graph) {
  if (graph.weights_place()) return *graph.weights_place();
  throw_bad_input(
      "search", graph.path(),
      "its edges have no weights: convert a file that has some (.wel, .gr, .wsg, .mtx, .npz and others), or generate them");
}

u64 choose_source(graph::graph_folder const& graph, std::optional<u64> asked, std::string const& rule, u32 trial) {
  if (rule != "gap" && rule != "emogi" && rule != "bam") {
    throw_bad_input("search", graph.path(), "sources '" + rule + "': there is no such rule; choose gap, emogi or bam");
  }
  const u64 least = rule == "bam" ? 3 : 1;  // "more than two neighbors" (dissertation 7.1.1)
  if (asked) {
    if (*asked < graph.vertices()) return *asked;
    throw_bad_input(
        "search", graph.path(),
        "source " + std::to_string(*asked) + ": its vertices are numbered 0 to " + std::to_string(graph.vertices() - 1));
  }
  if (graph.edges() == 0) return 0;
  auto const offsets = graph.offsets();
  std::mt19937_64 random(source_seed);
  // An edge drawn at random would prefer large lists; a vertex drawn until it has edges does not (GAP's rule).
  for (u64 tries = 0; tries < 64 * graph.vertices() + 64 * trial; ++tries) {
    const u64 v = random() % graph.vertices();
    if (offsets[v + 1] - offsets[v] >= least && trial-- == 0) return v;
  }
  for (u64 v = 0; v < graph.vertices(); ++v) {
    if (offsets[v + 1] - offsets[v] >= least) return v;
  }
  throw_bad_input("search", graph.path(), "no vertex has more than two neighbours, as sources '" + rule + "' asks: choose gap");
}

memory_need needed_memory(graph_options const& options, graph::graph_folder const& graph, u64 bytes_of_a_vertex,
                          bool weighted) {
  memory_need need;
  need.vertex_bytes = (graph.vertices() + 1) * sizeof(u64) + graph.vertices() * bytes_of_a_vertex;
  const u64 edges = graph.edges() * (graph.edges_place().item_bytes + (weighted ? sizeof(u32) : 0));
  if (options.placement == "hbm") need.edge_bytes += edges;
  const bool modelled = options.media != "file" && options.media_place == "hbm";
  if (modelled) need.edge_bytes += options.layout == "replicated" ? options.drives * edges : edges;
  const bool copies_parts =
      options.placement == "storage" || options.placement == "host-cached" || options.placement == "subgraph";
  // Copies of lists take no more than there is.
  const u64 most = options.placement == "subgraph" ? edges + (graph.edges() + 2 * graph.vertices()) * sizeof(u64) : ~u64{0};
  if (copies_parts) need.edge_bytes += std::min(options.cache_bytes, most);
  return need;
}

bool has_room_for_incoming(graph_options const& options, graph::graph_folder const& graph, executor& on) {
  if (on.kind() == executor_kind::cpu) return true;
  const u64 edges = options.placement == "hbm" ? graph.edges() * graph.edges_place().item_bytes : 0;
  return edges + (graph.vertices() + 1) * sizeof(u64) < on.memory().free_bytes();
}

std::string missing_memory(memory_need const& need, u64 free_bytes) {
  if (need.all() <= free_bytes) return {};
  const std::string found = std::to_string(need.vertex_bytes) + " bytes for vertices and " + std::to_string(need.edge_bytes) +
                            " for edges do not fit the GPU, which has " + std::to_string(free_bytes) +
                            " free: " + std::to_string(need.all() - free_bytes) + " are missing; ";
  if (need.vertex_bytes > free_bytes) return found + "choose executor cpu, or a GPU with more memory";
  return found + "choose placement host, or a smaller cache";
}

void check_memory(graph_options const& options, graph::graph_folder const& graph, executor& on, u64 bytes_of_a_vertex,
                  bool weighted) {
  if (on.kind() == executor_kind::cpu) return;
  const std::string missing =
      missing_memory(needed_memory(options, graph, bytes_of_a_vertex, weighted), on.memory().free_bytes());
  if (!missing.empty()) throw_bad_input("search", graph.path(), missing);
}

}  // namespace penstock::analytics
