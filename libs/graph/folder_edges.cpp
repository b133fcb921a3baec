#include "libs/graph/folder_edges.hpp"

#include "libs/graph/edge_fingerprint.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <tuple>
#include <vector>

namespace penstock::graph {
namespace {

/// The other end of an edge, and its weight.
using half_edge = std::tuple<u64, u32>;

/// The lists of a vertex as they are, and as those of its higher neighbours have them. Sorted.
struct both_lists {
  std::vector<half_edge> own{};
  std::vector<half_edge> others{};
};

/// The lowest vertex that not all its higher neighbours agree with, or vertices().
u64 first_one_sided(binary_csr const& edges, unsigned threads, progress_meter& meter) {
  std::vector<u64> balance(edges.vertices());
  parallel_for(edges.blocks(), threads, meter, [&](u64 block) {
    edges.produce(block, [&](std::span<edge const> batch) {
      for (edge const& e : batch)
        std::atomic_ref(balance[std::min(e.from, e.to)]).fetch_add(signed_fingerprint(e), std::memory_order_relaxed);
    });
  });
  auto const wrong = std::find_if(balance.begin(), balance.end(), [](u64 sum) { return sum != 0; });
  return static_cast<u64>(wrong - balance.begin());
}

both_lists lists_of(u64 vertex, binary_csr const& edges, unsigned threads, progress_meter& meter) {
  both_lists lists;
  std::mutex mutex;
  parallel_for(edges.blocks(), threads, meter, [&](u64 block) {
    edges.produce(block, [&](std::span<edge const> batch) {
      for (edge const& e : batch) {
        if (std::min(e.from, e.to) != vertex || e.from == e.to) continue;
        std::lock_guard const lock(mutex);
        e.from == vertex ? lists.own.emplace_back(e.to, e.weight) : lists.others.emplace_back(e.from, e.weight);
      }
    });
  });
  std::sort(lists.own.begin(), lists.own.end());
  std::sort(lists.others.begin(), lists.others.end());
  return lists;
}

std::string describe(u64 from, u64 to, u32 weight, weight_type type) {
  std::string ends = std::to_string(from) + " -> " + std::to_string(to);
  if (type == weight_type::none) return ends;
  std::string const value = type == weight_type::float32 ? std::to_string(std::bit_cast<float>(weight))
                                                         : std::to_string(static_cast<std::int32_t>(weight));
  return ends + " (weight " + value + ")";
}

}  // namespace

csr_layout layout_of(graph_folder const& graph) {
  if (graph.edges_place().stored != nullptr)
    throw_bad_input("read", graph.path(), "it is in no folder: export it (penstock volume export)");
  std::string const offsets = graph.path() + "/offsets.npy";
  array_place const& targets = graph.edges_place();
  csr_layout layout;
  layout.vertices = graph.vertices();
  layout.edges = graph.edges();
  layout.directed = graph.directed();
  layout.inputs.emplace_back(file::open(offsets));
  layout.inputs.emplace_back(file::open(targets.path));
  layout.offsets = {0, read_npy_header(offsets).data_offset, 8, item_type::uint64};
  layout.targets = {1, targets.data_offset, targets.item_bytes, targets.item_bytes == 8 ? item_type::uint64 : item_type::int32};
  if (!graph.weights_place()) return layout;
  layout.inputs.emplace_back(file::open(graph.weights_place()->path));
  layout.weights = graph.weights_place()->kind == 'f' ? weight_type::float32 : weight_type::int32;
  layout.weight_values = {2, graph.weights_place()->data_offset, 4, item_type::uint32};
  return layout;
}

void check_both_ways(graph_folder const& graph, unsigned threads, progress_meter& meter) {
  if (graph.directed() || graph.edges_place().stored != nullptr) return;
  binary_csr const edges(layout_of(graph));
  std::atomic<u64> balance{0};
  parallel_for(edges.blocks(), worker_count(threads), meter, [&](u64 block) {
    u64 mine = 0;
    edges.produce(block, [&](std::span<edge const> batch) {
      for (edge const& e : batch) mine += signed_fingerprint(e);
    });
    balance.fetch_add(mine, std::memory_order_relaxed);
  });
  if (balance != 0)
    throw_bad_input("open", graph.path(),
                    "its graph.json says that it is undirected, so that each edge goes both ways, but " +
                        one_way_edge(graph, threads, meter) +
                        " is not there the other way round: convert it again, or correct it");
}

std::string one_way_edge(graph_folder const& graph, unsigned threads, progress_meter& meter) {
  binary_csr const edges(layout_of(graph));
  unsigned const workers = worker_count(threads);
  u64 const vertex = first_one_sided(edges, workers, meter);
  if (vertex == edges.vertices()) return {};
  both_lists const lists = lists_of(vertex, edges, workers, meter);
  std::vector<half_edge> there, back;
  std::set_difference(lists.own.begin(), lists.own.end(), lists.others.begin(), lists.others.end(), std::back_inserter(there));
  std::set_difference(lists.others.begin(), lists.others.end(), lists.own.begin(), lists.own.end(), std::back_inserter(back));
  if (!there.empty()) {
    auto const [to, weight] = there.front();
    return describe(vertex, to, weight, edges.weights());
  }
  auto const [from, weight] = back.front();
  return describe(from, vertex, weight, edges.weights());
}

}  // namespace penstock::graph
