#include "libs/graph/bfs_reference.hpp"

#include "libs/graph/certificates.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::graph {
namespace {

using depth = std::int32_t;
constexpr depth unreached = -1;

/// The vertices of one level, in ascending order: a list while they are few, else found again by their depth, so that a level
/// of any size costs at most an eighth of a byte per vertex.
class level_list {
 public:
  explicit level_list(u64 vertices) : most_(vertices / 64 + 1) {}

  void add(u64 v) {
    ++size_;
    if (list_.size() < most_) list_.push_back(v);
  }
  bool empty() const { return size_ == 0; }
  bool listed() const { return size_ == list_.size(); }
  void clear() {
    size_ = 0;
    list_.clear();
  }
  template <class F>
  void for_each(std::vector<depth> const& depths, depth level, F const& f) {
    if (listed()) {
      std::sort(list_.begin(), list_.end());
      for (u64 v : list_) f(v);
    } else {
      for (u64 v = 0; v < depths.size(); ++v)
        if (depths[v] == level) f(v);
    }
  }

 private:
  u64 most_;
  u64 size_ = 0;
  std::vector<u64> list_;
};

void check_source(graph_folder const& graph, u64 source) {
  if (source >= graph.vertices())
    throw_bad_input("bfs", graph.path(),
                    "source " + std::to_string(source) + " is no vertex: the graph has " + std::to_string(graph.vertices()) +
                        ", numbered from 0");
}

[[noreturn]] void throw_bad_edge(graph_folder const& graph, u64 position, std::int64_t to) {
  throw_bad_input("bfs", graph.edges_place().path,
                  "edge " + std::to_string(position) + " points to vertex " + std::to_string(to) + ", the graph has " +
                      std::to_string(graph.vertices()) + ": convert the graph again");
}

template <class Id>
std::vector<depth> search(graph_folder const& graph, u64 source, progress_meter& meter) {
  auto const offsets = graph.offsets();
  edge_reader<Id> edges(graph);
  std::vector<depth> depths(graph.vertices(), unreached);
  level_list current(graph.vertices()), next(graph.vertices());
  depths[source] = 0;
  current.add(source);
  u64 scanned = 0, visited = 0;
  for (depth level = 0; !current.empty(); ++level) {
    bool const sweep = !current.listed();
    current.for_each(depths, level, [&](u64 u) {
      auto const list = edges.read(offsets[u], offsets[u + 1], sweep);
      for (Id const& to : list) {
        auto const v = static_cast<u64>(to);
        if (v >= graph.vertices()) throw_bad_edge(graph, offsets[u] + static_cast<u64>(&to - list.data()), to);
        if (depths[v] != unreached) continue;
        depths[v] = level + 1;
        next.add(v);
      }
      scanned += offsets[u + 1] - offsets[u];
      if ((++visited & 0xfff) == 0) meter.report(scanned, graph.edges());
    });
    std::swap(current, next);
    next.clear();
  }
  return depths;
}

/// has_edge: whether the graph has an edge from v's parent to v.
template <class Parent>
bool rules_hold(std::vector<depth> const& depths, u64 source, std::span<Parent const> parents, u64 v, bool has_edge) {
  Parent const parent = parents[v];
  if (depths[v] == unreached || parent < 0) return depths[v] == unreached && parent < 0;
  auto const p = static_cast<u64>(parent);
  if (v == source) return p == v;
  return p < parents.size() && depths[p] == depths[v] - 1 && has_edge;
}

/// REQUIRES: the rules do not hold for v.
template <class Parent>
std::string broken_rule(std::vector<depth> const& depths, u64 source, std::span<Parent const> parents, u64 v) {
  Parent const parent = parents[v];
  std::string const name = "vertex " + std::to_string(v);
  std::string const its_parent = name + " has parent " + std::to_string(parent);
  if (depths[v] == unreached) return its_parent + ", but cannot be reached from " + std::to_string(source);
  if (parent < 0) return name + " was not reached, but lies at depth " + std::to_string(depths[v]);
  auto const p = static_cast<u64>(parent);
  if (v == source) return "the source " + std::to_string(v) + " has parent " + std::to_string(parent) + ", not itself";
  if (p >= parents.size()) return its_parent + ", which is no vertex";
  if (depths[p] != depths[v] - 1)
    return its_parent + " at depth " + std::to_string(depths[p]) + ", but lies at depth " + std::to_string(depths[v]);
  return its_parent + ", but there is no edge from it";
}

/// One bit per vertex: whether its parent has an edge to it.
template <class Id, class Parent>
std::vector<bool> find_tree_edges(graph_folder const& graph, std::span<Parent const> parents, progress_meter& meter) {
  auto const offsets = graph.offsets();
  edge_reader<Id> edges(graph);
  std::vector<bool> found(graph.vertices());
  for (u64 u = 0; u < graph.vertices(); ++u) {
    auto const list = edges.read(offsets[u], offsets[u + 1], true);
    for (Id const& to : list) {
      auto const v = static_cast<u64>(to);
      if (v >= graph.vertices()) throw_bad_edge(graph, offsets[u] + static_cast<u64>(&to - list.data()), to);
      if (parents[v] >= 0 && static_cast<u64>(parents[v]) == u) found[v] = true;
    }
    if ((u & 0xffff) == 0) meter.report(u, graph.vertices());
  }
  return found;
}

}  // namespace

std::vector<depth> bfs_depths(graph_folder const& graph, u64 source, progress_meter& meter) {
  check_source(graph, source);
  return graph.edges_place().item_bytes == 4 ? search<std::int32_t>(graph, source, meter)
                                             : search<std::int64_t>(graph, source, meter);
}

template <class Parent>
std::string verify_bfs(graph_folder const& graph, u64 source, std::span<Parent const> parents, progress_meter& meter) {
  check_source(graph, source);
  if (parents.size() != graph.vertices())
    throw_bad_input(
        "verify", graph.path(),
        std::to_string(parents.size()) + " parents for " + std::to_string(graph.vertices()) + " vertices: give one for each");
  if (is_breadth_first_tree(graph, source, parents, meter)) return {};
  meter.phase(0, 500);
  std::vector<depth> const depths = bfs_depths(graph, source, meter);
  meter.phase(500, 1000);
  std::vector<bool> const has_edge = graph.edges_place().item_bytes == 4 ? find_tree_edges<std::int32_t>(graph, parents, meter)
                                                                         : find_tree_edges<std::int64_t>(graph, parents, meter);
  for (u64 v = 0; v < graph.vertices(); ++v)
    if (!rules_hold(depths, source, parents, v, has_edge[v])) return broken_rule(depths, source, parents, v);
  return {};
}

template std::string verify_bfs(graph_folder const&, u64, std::span<std::int32_t const>, progress_meter&);
template std::string verify_bfs(graph_folder const&, u64, std::span<std::int64_t const>, progress_meter&);

}  // namespace penstock::graph
