// The lists of a frontier, put side by side by CPU threads and copied to where kernels run, part by part: Subway (Sabet, Zhao,
// Gupta, EuroSys 2020), as a baseline. Where all lists are wanted they lie side by side already, and are copied as they are.
#pragma once

#include "libs/analytics/edge_lists.hpp"
#include "libs/analytics/graph_options.hpp"
#include "libs/media/placed_array.hpp"

#include <optional>
#include <vector>

namespace penstock::analytics {

/// A visitor for lists that were put side by side: list k is that of vertex chosen[k].
template <class Id, class Visitor>
struct visitor_of_copies {
  Visitor visitor;
  Id const* chosen = nullptr;  ///< nullptr: list k is that of vertex first + k
  u64 first = 0;

  static constexpr bool wants_all = Visitor::wants_all, stops = Visitor::stops, reads_beside = Visitor::reads_beside;
  static constexpr bool in_place = true;
  PENSTOCK_FN bool wants(u64 k) const { return visitor.wants(vertex(k)); }
  PENSTOCK_FN u64 vertex(u64 k) const { return chosen == nullptr ? first + k : static_cast<u64>(chosen[k]); }

  template <thread_group G>
  struct visit {
    using beside = typename beside_of<Visitor, G>::type;

    visitor_of_copies const& of;
    typename Visitor::template visit<G> inner;
    PENSTOCK_FN visit(visitor_of_copies const& visitor, G const& g) : of(visitor), inner(visitor.visitor, g) {}
    PENSTOCK_FN void edge(G const& g, bool mine, u64 k, u64 position, u64 to) {
      inner.edge(g, mine, mine ? of.vertex(k) : 0, position, to);
    }
    PENSTOCK_FN void look_ahead(bool reads, u64 const (&to)[most_in_flight]) { inner.look_ahead(reads, to); }
    PENSTOCK_FN void edge_of_run(G const& g, bool mine, u64 k, u64 position, u64 to, beside value, u32 number) {
      inner.edge_of_run(g, mine, mine ? of.vertex(k) : 0, position, to, value, number);
    }
    PENSTOCK_FN auto& beside_ref() { return inner.beside_ref(); }
    PENSTOCK_FN void finish(G const& g) { inner.finish(g); }
  };
};

/// For one thread.
template <class Id>
class subgraph_copies {
 public:
  /// Parts of as many bytes as the cache of other placements has. Edges and weights (nullptr: none) outlive this, and are read
  /// in place. Throws bad_input for a strategy: there is one way to walk copies.
  subgraph_copies(executor& on, graph::graph_folder const& graph, graph_options const& options,
                  media::placed_array const& edges, media::placed_array const* weights);

  struct part {
    u64 const* offsets = nullptr;  ///< [lists + 1] into the part, where kernels run
    u64 first = 0;                 ///< of its lists, among all that were taken
    u64 lists = 0, edges = 0;      ///< in it: a list that is cut by its end is in the next one, too
  };

  /// Takes the lists of vertices: `count` in local memory, or nullptr and all of the graph. Waits for what was launched.
  void take(Id const* vertices, u64 count);
  /// Copies the next part, over the one before, behind the kernels that were launched on it. Nothing: there is none.
  std::optional<part> next();

  Id const* edges() const { return edges_.data(); }
  template <class Weight>
  array_view<Weight> weights() const {
    return {reinterpret_cast<Weight const*>(weights_.data()), weights_.size()};
  }
  /// 1 + the position of the first edge of the file that leads out of the graph.
  u64 find_bad_edge() const;

  u64 bytes_copied() const { return bytes_copied_; }
  unsigned threads() const { return threads_; }

 private:
  void collect(u64 begin, u64 end);
  template <class T>
  void copy(buffer<T> const& to, T const* from, u64 count);

  executor& on_;
  graph::graph_folder const& graph_;
  unsigned threads_;
  media::placed_array const& placed_edges_;
  media::placed_array const* placed_weights_;
  u64 capacity_;  ///< edges, and lists, of a part
  buffer<Id> edges_, staged_edges_;
  buffer<u32> weights_, staged_weights_;
  buffer<u64> offsets_, staged_offsets_;
  std::vector<Id> chosen_;
  std::vector<u64> ends_;  ///< where each list that was taken begins among them, and the end
  bool all_ = false;
  u64 lists_ = 0, edges_count_ = 0;  ///< taken
  u64 done_ = 0, list_ = 0;          ///< edges that were copied; the list that the next one is in
  u64 bytes_copied_ = 0;
};

extern template class subgraph_copies<std::int32_t>;
extern template class subgraph_copies<std::int64_t>;

}  // namespace penstock::analytics
