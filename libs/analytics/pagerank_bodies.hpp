// PageRank by iteration: rank'(v) = (1 - d) / n + d * sum of rank(u) / outdegree(u) over the edges u -> v (GAP's definition).
// With weights an edge has w / (sum of the weights that leave u) instead, and 1 / n may be another distribution (NetworkX's).
// Of a graph that has each edge both ways the sums are pulled, with few atomics; of another one they are pushed.
#pragma once

#include "libs/analytics/edge_lists.hpp"

#include <bit>
#include <type_traits>

namespace penstock::analytics {

/// Weights of edges by their bits, which are an int32's or a float32's: one kernel reads either.
struct edge_weights {
  array_view<u32> bits{};
  bool real = false;

  PENSTOCK_FN double value(u32 of) const {
    return real ? static_cast<double>(std::bit_cast<float>(of)) : static_cast<double>(static_cast<std::int32_t>(of));
  }
};
struct no_weights {};
template <bool Weighted>
using weights_if = std::conditional_t<Weighted, edge_weights, no_weights>;

/// The same bytes as words.
template <class T>
array_view<u32> as_words(array_view<T> const& of) {
  static_assert(sizeof(T) == sizeof(u32));
  if (of.is_resident()) return {reinterpret_cast<u32 const*>(of.resident()), of.size()};
  return {of.reader(), of.address_of(0) - of.reader().base, of.size()};
}

/// What a group's visit reads beside the edges, if anything.
template <bool Weighted>
struct weight_ref {
  PENSTOCK_FN explicit weight_ref(no_weights const&) {}
  template <thread_group G>
  PENSTOCK_FN double read(G const&, bool, u64) {
    return 1;
  }
};
template <>
struct weight_ref<true> {
  edge_weights const& of;
  array_ref<u32> bits;
  PENSTOCK_FN explicit weight_ref(edge_weights const& weights) : of(weights), bits(weights.bits) {}
  template <thread_group G>
  PENSTOCK_FN double read(G const& g, bool mine, u64 position) {
    return of.value(bits.read(g, mine, mine ? position : 0));
  }
};

template <class Real>
struct rank_data {
  Real* rank = nullptr;        ///< [vertices]
  Real* share = nullptr;       ///< [vertices] what an edge of weight 1 passes on: d * rank / sum of weights
  Real* sum = nullptr;         ///< [vertices] what a vertex got; zeros between iterations
  double* dangling = nullptr;  ///< d * rank of the vertices without edges
  double* change = nullptr;    ///< sum of |rank' - rank|
};

template <class Real>
struct share_ranks {
  rank_data<Real> data;
  u64 const* offsets = nullptr;
  u64 vertices = 0;
  double damping = 0;
  double const* strength = nullptr;  ///< [vertices] sums of the weights that leave; nullptr: each edge counts 1

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double lost = 0;
    for_vertices(g, range, vertices, [&](u64 v) {
      const double kept = damping * static_cast<double>(data.rank[v]);
      const double parts = strength != nullptr ? strength[v] : static_cast<double>(offsets[v + 1] - offsets[v]);
      if (parts == 0) lost += kept;
      data.share[v] = static_cast<Real>(parts == 0 ? 0 : kept / parts);
    });
    const double all = sum_over(g, lost);
    if (is_leader(g) && all != 0) device_ref<double>(*data.dangling).fetch_add(all, relaxed);
  }
};

/// Each vertex adds up the shares of its neighbours. While a group stays on one vertex its lanes keep their parts of the sum;
/// where lanes have several, each vertex's part is added up over its lanes, and then to what other groups have of it.
template <class Real, bool Weighted = false>
struct pull_ranks {
  rank_data<Real> data;
  weights_if<Weighted> weights{};

  static constexpr bool wants_all = true, stops = false, reads_beside = Weighted;
  PENSTOCK_FN bool wants(u64) const { return true; }

  template <thread_group G>
  struct visit {
    using beside = u32;

    rank_data<Real> const& data;
    weight_ref<Weighted> weights;
    u64 vertex = 0;
    double sum = 0;  ///< this lane's part of that vertex's

    PENSTOCK_FN visit(pull_ranks const& visitor, G const&) : data(visitor.data), weights(visitor.weights) {}
    PENSTOCK_FN auto& beside_ref() { return weights.bits; }

    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64 position, u64 to) {
      add_edge(g, mine, v, to, weights.read(g, mine, position));
    }
    PENSTOCK_FN void look_ahead(bool, u64 const (&)[most_in_flight]) {}
    PENSTOCK_FN void edge_of_run(G const& g, bool mine, u64 v, u64, u64 to, u32 bits, u32) {
      add_edge(g, mine, v, to, weights.of.value(bits));
    }

    PENSTOCK_FN void finish(G const& g) {
      const double all = sum_over(g, sum);
      if (is_leader(g) && all != 0) add(vertex, all);
      sum = 0;
    }

   private:
    PENSTOCK_FN void add_edge(G const& g, bool mine, u64 v, u64 to, double weight) {
      const auto having = g.ballot(mine);
      if (!any(having)) return;
      const double share = mine ? static_cast<double>(data.share[to]) * weight : 0;
      const u64 first = g.shfl(v, lowest(having));
      if (any(g.ballot(mine && v != first))) {
        finish(g);
        add_by_vertex(g, mine ? v : ~0ull, share);
        return;
      }
      if (first != vertex) finish(g);
      vertex = first;
      sum += share;
    }

    // A segmented scan: the vertices of the lanes rise. The last lane of a vertex has its sum.
    PENSTOCK_FN void add_by_vertex(G const& g, u64 v, double share) {
      const u32 lanes = size(g), index = index_in(g);
      for (u32 step = 1; step < lanes; step *= 2) {
        const u32 from = index >= step ? nth(g.members(), index - step) : g.rank();
        const u64 other = g.shfl(v, from);
        const u64 part = g.shfl(std::bit_cast<u64>(share), from);
        if (index >= step && other == v) share += std::bit_cast<double>(part);
      }
      const u64 next = g.shfl(v, index + 1 < lanes ? nth(g.members(), index + 1) : g.rank());
      if (v != ~0ull && (index + 1 == lanes || next != v)) add(v, share);
    }

    PENSTOCK_FN void add(u64 v, double part) { device_ref<Real>(data.sum[v]).fetch_add(static_cast<Real>(part), relaxed); }
  };
};

/// Each vertex gives its neighbours their shares.
template <class Real, bool Weighted = false>
struct push_ranks {
  rank_data<Real> data;
  weights_if<Weighted> weights{};

  static constexpr bool wants_all = true, stops = false, reads_beside = Weighted;
  PENSTOCK_FN bool wants(u64) const { return true; }

  template <thread_group G>
  struct visit {
    using beside = u32;

    rank_data<Real> const& data;
    weight_ref<Weighted> weights;
    PENSTOCK_FN visit(push_ranks const& visitor, G const&) : data(visitor.data), weights(visitor.weights) {}
    PENSTOCK_FN auto& beside_ref() { return weights.bits; }
    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64 position, u64 to) {
      give(mine, v, to, weights.read(g, mine, position));
    }
    PENSTOCK_FN void look_ahead(bool, u64 const (&)[most_in_flight]) {}
    PENSTOCK_FN void edge_of_run(G const&, bool mine, u64 v, u64, u64 to, u32 bits, u32) {
      give(mine, v, to, weights.of.value(bits));
    }
    PENSTOCK_FN void finish(G const&) {}

   private:
    PENSTOCK_FN void give(bool mine, u64 v, u64 to, double weight) {
      if (!mine) return;
      const Real part = Weighted ? static_cast<Real>(static_cast<double>(data.share[v]) * weight) : data.share[v];
      device_ref<Real>(data.sum[to]).fetch_add(part, relaxed);
    }
  };
};

template <class Real>
struct take_ranks {
  rank_data<Real> data;
  u64 vertices = 0;
  double base = 0;                   ///< what every vertex gets
  double const* teleport = nullptr;  ///< [vertices] of which each gets `teleported` times its own; nullptr: none does
  double teleported = 0;
  double const* dangling = nullptr;  ///< the same of what vertices without edges had
  double lost = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double moved = 0;
    for_vertices(g, range, vertices, [&](u64 v) {
      const double before = static_cast<double>(data.rank[v]);
      double all = base + static_cast<double>(data.sum[v]);
      if (teleport != nullptr) all += teleported * teleport[v];
      if (dangling != nullptr) all += lost * dangling[v];
      const Real now = static_cast<Real>(all);
      moved += now > before ? static_cast<double>(now) - before : before - static_cast<double>(now);
      data.rank[v] = now;
      data.sum[v] = 0;
    });
    const double all = sum_over(g, moved);
    if (is_leader(g) && all != 0) device_ref<double>(*data.change).fetch_add(all, relaxed);
  }
};

}  // namespace penstock::analytics
