// PageRank by iteration: rank'(v) = (1 - d) / n + d * sum of rank(u) / outdegree(u) over the edges u -> v (GAP's definition).
// Of a graph that has each edge both ways the sums are pulled, list by list and without atomics; of another one they are
// pushed.
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

template <class Id, class Real>
struct pull_ranks {
  edge_lists<Id> lists;
  rank_data<Real> data;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    lists.for_each_vertex(
        g, range, [](u64 k) { return k; },
        [&](u64 v, u64 begin, u64 end, array_ref<Id>& neighbours) {
          double mine = 0;
          lists.walk(g, begin, end, neighbours, [&](bool has, u64, u64 to) {
            if (has) mine += static_cast<double>(data.share[to]);
          });
          const double all = sum_over(g, mine);
          if (is_leader(g)) data.sum[v] = static_cast<Real>(all);
        });
  }
};

template <class Id, class Real>
struct push_ranks {
  edge_lists<Id> lists;
  rank_data<Real> data;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    lists.for_each_vertex(
        g, range, [](u64 k) { return k; },
        [&](u64 v, u64 begin, u64 end, array_ref<Id>& neighbours) {
          const Real share = data.share[v];
          lists.walk(g, begin, end, neighbours, [&](bool mine, u64, u64 to) {
            if (mine) device_ref<Real>(data.sum[to]).fetch_add(share, relaxed);
          });
        });
  }
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
