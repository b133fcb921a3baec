#include "libs/graph/certificates.hpp"

#include "penstock/core/bits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace penstock::graph {
namespace {

/// Edges that a thread takes at once.
constexpr u64 part_edges = u64{1} << 20;
constexpr u64 part_vertices = u64{1} << 16;
/// Readings of the edges for ways that have pieces of no length, before one thread has to find out.
constexpr u32 most_passes = 8;

template <class T>
T load(T const& value) {
  return std::atomic_ref<T>(const_cast<T&>(value)).load(std::memory_order_relaxed);
}
template <class T>
void store(T& value, T to) {
  std::atomic_ref<T>(value).store(to, std::memory_order_relaxed);
}

/// Calls part(first, last) for the vertices, in parts that have about as many edges, from all processors.
template <class Part>
void for_each_part(graph_folder const& graph, progress_meter& meter, Part const& part) {
  auto const offsets = graph.offsets();
  std::vector<u64> bounds{0};
  for (u64 at = 0; at < graph.vertices();) {
    const u64 full =
        static_cast<u64>(std::upper_bound(offsets.begin(), offsets.end(), offsets[at] + part_edges) - offsets.begin());
    at = std::clamp(full - 1, at + 1, std::min(at + part_vertices * 16, graph.vertices()));
    bounds.push_back(at);
  }
  parallel_for(bounds.size() - 1, worker_count(0), meter, [&](u64 k) { part(bounds[k], bounds[k + 1]); });
}

/// Calls visit(v, position, to) for every edge; false for one that leads out of the graph.
template <class Id, class Visit>
bool sweep_edges(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  std::atomic<bool> good = true;
  for_each_part(graph, meter, [&](u64 first, u64 last) {
    auto const offsets = graph.offsets();
    edge_reader<Id> edges(graph);
    for (u64 v = first; v < last; ++v) {
      auto const list = edges.read(offsets[v], offsets[v + 1], true);
      for (u64 k = 0; k < list.size(); ++k) {
        const u64 to = static_cast<u64>(list[k]);
        if (to >= graph.vertices()) {
          good.store(false, std::memory_order_relaxed);
          return;
        }
        visit(v, offsets[v] + k, to);
      }
    }
  });
  return good;
}

template <class Visit>
bool for_each_edge(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  return graph.edges_place().item_bytes == 4 ? sweep_edges<std::int32_t>(graph, meter, visit)
                                             : sweep_edges<std::int64_t>(graph, meter, visit);
}

/// Whether test(v) holds for all vertices.
template <class Test>
bool all_vertices(u64 vertices, Test const& test) {
  std::atomic<bool> good = true;
  progress_meter quiet;
  parallel_for(ceil_div(vertices, part_vertices), worker_count(0), quiet, [&](u64 k) {
    for (u64 v = k * part_vertices; v < std::min(vertices, (k + 1) * part_vertices) && good.load(std::memory_order_relaxed);
         ++v) {
      if (!test(v)) good.store(false, std::memory_order_relaxed);
    }
  });
  return good;
}

/// The same with visit(v, to, weight), beside which `Weight`s are read; false also where no part was.
template <class Id, class Weight, class Visit>
bool sweep_weights(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  std::atomic<bool> good = true;
  for_each_part(graph, meter, [&](u64 first, u64 last) {
    auto const offsets = graph.offsets();
    edge_reader<Id> edges(graph);
    edge_reader<Weight> weights(*graph.weights_place());
    for (u64 v = first; v < last; ++v) {
      auto const list = edges.read(offsets[v], offsets[v + 1], true);
      auto const lengths = weights.read(offsets[v], offsets[v + 1], true);
      for (u64 k = 0; k < list.size(); ++k) {
        const u64 to = static_cast<u64>(list[k]);
        if (to >= graph.vertices()) {
          good.store(false, std::memory_order_relaxed);
          return;
        }
        visit(v, to, lengths[k]);
      }
    }
  });
  return good;
}

template <class Weight, class Visit>
bool for_each_weight(graph_folder const& graph, progress_meter& meter, Visit const& visit) {
  return graph.edges_place().item_bytes == 4 ? sweep_weights<std::int32_t, Weight>(graph, meter, visit)
                                             : sweep_weights<std::int64_t, Weight>(graph, meter, visit);
}

/// visit(v, to, what the edge counts): its weight, or 1.
template <class Visit>
bool for_each_share(graph_folder const& graph, bool weighted, progress_meter& meter, Visit const& visit) {
  if (!weighted) return for_each_edge(graph, meter, [&](u64 v, u64, u64 to) { visit(v, to, 1.0); });
  const auto share = [&](u64 v, u64 to, auto weight) { visit(v, to, static_cast<double>(weight)); };
  return graph.weights_place()->kind == 'f' ? for_each_weight<float>(graph, meter, share)
                                            : for_each_weight<std::int32_t>(graph, meter, share);
}

using depth = std::int32_t;

/// Sets the depths of v and of what lies between it and the source: the steps that lead there. False if they do not.
template <class Parent>
bool find_depth(std::vector<depth>& depths, std::span<Parent const> parents, u64 v) {
  u64 steps = 0, at = v;
  while (load(depths[at]) < 0) {
    if (parents[at] < 0 || static_cast<u64>(parents[at]) >= parents.size() || ++steps > parents.size()) return false;
    at = static_cast<u64>(parents[at]);
  }
  depth of_this = load(depths[at]) + static_cast<depth>(steps);
  for (u64 k = v; load(depths[k]) < 0; k = static_cast<u64>(parents[k])) store(depths[k], of_this--);
  return true;
}

/// Trees whose roots are their smallest vertices, for all threads.
class union_find {
 public:
  explicit union_find(u64 vertices) : parents_(vertices) {
    for (u64 v = 0; v < vertices; ++v) parents_[v] = v;
  }
  u64 root(u64 v) {
    for (;;) {
      const u64 above = load(parents_[v]), next = load(parents_[above]);
      if (above == next) return above;
      store(parents_[v], next);  // an ancestor, whatever others do
      v = next;
    }
  }
  void unite(u64 a, u64 b) {
    for (;;) {
      a = root(a);
      b = root(b);
      if (a == b) return;
      u64 larger = std::max(a, b);
      const u64 seen = larger;
      if (std::atomic_ref(parents_[seen]).compare_exchange_strong(larger, std::min(a, b), std::memory_order_relaxed)) return;
    }
  }

 private:
  std::vector<u64> parents_;
};

}  // namespace

template <class Parent>
bool is_breadth_first_tree(graph_folder const& graph, u64 source, std::span<Parent const> parents, progress_meter& meter) {
  const u64 n = graph.vertices();
  if (parents.size() != n || source >= n || parents[source] != static_cast<Parent>(source)) return false;
  std::vector<depth> depths(n, -1);
  depths[source] = 0;
  if (!all_vertices(n, [&](u64 v) { return parents[v] < 0 || find_depth(depths, parents, v); })) return false;
  std::vector<char> has_edge(n, 0);
  has_edge[source] = 1;
  std::atomic<bool> good = true;
  const bool read = for_each_edge(graph, meter, [&](u64 v, u64, u64 to) {
    if (depths[v] < 0) return;
    if (depths[to] < 0 || depths[to] > depths[v] + 1) good.store(false, std::memory_order_relaxed);
    if (parents[to] == static_cast<Parent>(v)) store(has_edge[to], char{1});
  });
  return read && good && all_vertices(n, [&](u64 v) { return parents[v] < 0 || has_edge[v] != 0; });
}

bool are_components(graph_folder const& graph, std::vector<std::int64_t> const& labels, progress_meter& meter) {
  const u64 n = graph.vertices();
  if (labels.size() != n) return false;
  union_find trees(n);
  std::atomic<bool> good = true;
  const bool read = for_each_edge(graph, meter, [&](u64 v, u64, u64 to) {
    if (labels[v] != labels[to]) good.store(false, std::memory_order_relaxed);
    trees.unite(v, to);
  });
  return read && good && all_vertices(n, [&](u64 v) { return labels[v] == static_cast<std::int64_t>(trees.root(v)); });
}

double rank_change(graph_folder const& graph, std::vector<double> const& ranks, rank_rules const& rules,
                   progress_meter& meter) {
  const u64 n = graph.vertices();
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (ranks.size() != n) return wrong;
  auto const offsets = graph.offsets();
  std::vector<double> strengths(n, 0), shares(n, 0), sums(n, 0);
  if (rules.weighted) {
    if (!for_each_share(graph, true, meter, [&](u64 v, u64, double weight) { strengths[v] += weight; })) return wrong;
  } else {
    for (u64 v = 0; v < n; ++v) strengths[v] = static_cast<double>(offsets[v + 1] - offsets[v]);
  }
  double lost = 0;
  for (u64 v = 0; v < n; ++v) {
    if (!(ranks[v] >= 0)) return wrong;
    (strengths[v] == 0 ? lost : shares[v]) += strengths[v] == 0 ? ranks[v] : ranks[v] / strengths[v];
  }
  // Where each edge is stored both ways a thread adds to its own vertices only.
  const bool both_ways = !graph.directed();
  const bool read = for_each_share(graph, rules.weighted, meter, [&](u64 v, u64 to, double weight) {
    if (both_ways) {
      sums[v] += shares[to] * weight;
    } else {
      std::atomic_ref(sums[to]).fetch_add(shares[v] * weight, std::memory_order_relaxed);
    }
  });
  if (!read) return wrong;
  const auto part = [&](std::span<double const> of, u64 v) { return of.empty() ? 1 / static_cast<double>(n) : of[v]; };
  auto const lost_goes = rules.dangling_goes.empty() ? rules.teleport : rules.dangling_goes;
  double change = 0;
  for (u64 v = 0; v < n; ++v) {
    double base = (1 - rules.damping) * part(rules.teleport, v);
    if (rules.dangling) base += rules.damping * lost * part(lost_goes, v);
    change += std::abs(base + rules.damping * sums[v] - ranks[v]);
  }
  return change;
}

template <class Weight, class Distance>
bool are_distances(graph_folder const& graph, u64 source, std::vector<Distance> const& distances, progress_meter& meter) {
  const u64 n = graph.vertices();
  if (distances.size() != n || source >= n || distances[source] != 0) return false;
  const auto reached = [&](u64 v) { return distances[v] >= 0 && distances[v] <= std::numeric_limits<Distance>::max(); };
  std::vector<char> has_way(n, 0);
  has_way[source] = 1;
  std::atomic<bool> good = true;
  for (u32 pass = 0; pass < most_passes; ++pass) {
    std::atomic<bool> found_some = false;
    // Weights are read beside the edges, by the same parts.
    const auto part = [&]<class Id>(Id, u64 first, u64 last) {
      auto const offsets = graph.offsets();
      edge_reader<Id> edges(graph);
      edge_reader<Weight> weights(*graph.weights_place());
      for (u64 v = first; v < last; ++v) {
        if (!reached(v)) continue;
        auto const list = edges.read(offsets[v], offsets[v + 1], true);
        auto const lengths = weights.read(offsets[v], offsets[v + 1], true);
        for (u64 k = 0; k < list.size(); ++k) {
          const u64 to = static_cast<u64>(list[k]);
          const Distance there = distances[v] + static_cast<Distance>(lengths[k]);
          if (to >= n || !(lengths[k] >= 0) || !reached(to) || distances[to] > there) {
            good.store(false, std::memory_order_relaxed);
            return;
          }
          // From a vertex that lies nearer, or as near and has a way already.
          if (distances[to] != there || load(has_way[to]) != 0) continue;
          if (distances[v] < there || load(has_way[v]) != 0) {
            store(has_way[to], char{1});
            found_some.store(true, std::memory_order_relaxed);
          }
        }
      }
    };
    for_each_part(graph, meter, [&](u64 first, u64 last) {
      graph.edges_place().item_bytes == 4 ? part(std::int32_t{}, first, last) : part(std::int64_t{}, first, last);
    });
    if (!good) return false;
    if (all_vertices(n, [&](u64 v) { return !reached(v) || has_way[v] != 0; })) return true;
    if (!found_some) return false;
  }
  return false;
}

template <class Weight, class Distance>
bool is_path_tree(graph_folder const& graph, u64 source, std::vector<Distance> const& distances,
                  std::vector<std::int64_t> const& predecessors, progress_meter& meter) {
  const u64 n = graph.vertices();
  if (distances.size() != n || predecessors.size() != n || source >= n) return false;
  if (predecessors[source] != static_cast<std::int64_t>(source)) return false;
  const auto reached = [&](u64 v) { return distances[v] >= 0 && distances[v] <= std::numeric_limits<Distance>::max(); };
  std::vector<depth> depths(n, -1);
  depths[source] = 0;
  const auto leads_to_source = [&](u64 v) {
    return reached(v) ? find_depth(depths, std::span(predecessors), v) : predecessors[v] == -1;
  };
  if (!all_vertices(n, leads_to_source)) return false;
  std::vector<char> has_edge(n, 0);
  has_edge[source] = 1;
  const bool read = for_each_weight<Weight>(graph, meter, [&](u64 v, u64 to, Weight length) {
    if (predecessors[to] != static_cast<std::int64_t>(v) || to == source) return;
    if (distances[v] + static_cast<Distance>(length) == distances[to]) store(has_edge[to], char{1});
  });
  return read && all_vertices(n, [&](u64 v) { return !reached(v) || has_edge[v] != 0; });
}

template bool is_breadth_first_tree(graph_folder const&, u64, std::span<std::int32_t const>, progress_meter&);
template bool is_breadth_first_tree(graph_folder const&, u64, std::span<std::int64_t const>, progress_meter&);
template bool are_distances<std::int32_t>(graph_folder const&, u64, std::vector<std::int64_t> const&, progress_meter&);
template bool are_distances<float>(graph_folder const&, u64, std::vector<double> const&, progress_meter&);
template bool is_path_tree<std::int32_t>(graph_folder const&, u64, std::vector<std::int64_t> const&,
                                         std::vector<std::int64_t> const&, progress_meter&);
template bool is_path_tree<float>(graph_folder const&, u64, std::vector<double> const&, std::vector<std::int64_t> const&,
                                  progress_meter&);

}  // namespace penstock::graph
