// PageRank by iteration: rank'(v) = (1 - d) / n + d * sum of rank(u) / outdegree(u) over the edges u -> v (GAP's definition).
// Of a graph that has each edge both ways the sums are pulled, with few atomics; of another one they are pushed.
#pragma once

#include "apps/analytics/edge_lists.hpp"

namespace penstock::apps {

template <class Real>
struct rank_data {
  Real* rank = nullptr;        ///< [vertices]
  Real* share = nullptr;       ///< [vertices] what each neighbour gets: d * rank / outdegree
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

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double lost = 0;
    for_vertices(g, range, vertices, [&](u64 v) {
      const double kept = damping * static_cast<double>(data.rank[v]);
      const u64 degree = offsets[v + 1] - offsets[v];
      if (degree == 0) lost += kept;
      data.share[v] = static_cast<Real>(degree == 0 ? 0 : kept / static_cast<double>(degree));
    });
    const double all = sum_over(g, lost);
    if (is_leader(g) && all != 0) device_ref<double>(*data.dangling).fetch_add(all, relaxed);
  }
};

/// Each vertex adds up the shares of its neighbours. While a group stays on one vertex its lanes keep their parts of the sum;
/// where lanes have several, each vertex's part is added up over its lanes, and then to what other groups have of it.
template <class Real>
struct pull_ranks {
  rank_data<Real> data;

  static constexpr bool wants_all = true, stops = false, reads_beside = false;
  PENSTOCK_FN bool wants(u64) const { return true; }

  template <thread_group G>
  struct visit {
    rank_data<Real> const& data;
    u64 vertex = 0;
    double sum = 0;  ///< this lane's part of that vertex's

    PENSTOCK_FN visit(pull_ranks const& visitor, G const&) : data(visitor.data) {}

    PENSTOCK_FN void edge(G const& g, bool mine, u64 v, u64, u64 to) {
      const auto having = g.ballot(mine);
      if (!any(having)) return;
      const double share = mine ? static_cast<double>(data.share[to]) : 0;
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

    PENSTOCK_FN void finish(G const& g) {
      const double all = sum_over(g, sum);
      if (is_leader(g) && all != 0) add(vertex, all);
      sum = 0;
    }

   private:
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
template <class Real>
struct push_ranks {
  rank_data<Real> data;

  static constexpr bool wants_all = true, stops = false, reads_beside = false;
  PENSTOCK_FN bool wants(u64) const { return true; }

  template <thread_group G>
  struct visit {
    rank_data<Real> const& data;
    PENSTOCK_FN visit(push_ranks const& visitor, G const&) : data(visitor.data) {}
    PENSTOCK_FN void edge(G const&, bool mine, u64 v, u64, u64 to) {
      if (mine) device_ref<Real>(data.sum[to]).fetch_add(data.share[v], relaxed);
    }
    PENSTOCK_FN void finish(G const&) {}
  };
};

template <class Real>
struct take_ranks {
  rank_data<Real> data;
  u64 vertices = 0;
  double base = 0;  ///< what every vertex gets

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    double moved = 0;
    for_vertices(g, range, vertices, [&](u64 v) {
      const double before = static_cast<double>(data.rank[v]);
      const Real now = static_cast<Real>(base + static_cast<double>(data.sum[v]));
      moved += now > before ? static_cast<double>(now) - before : before - static_cast<double>(now);
      data.rank[v] = now;
      data.sum[v] = 0;
    });
    const double all = sum_over(g, moved);
    if (is_leader(g) && all != 0) device_ref<double>(*data.change).fetch_add(all, relaxed);
  }
};

}  // namespace penstock::apps
