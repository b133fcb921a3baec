// Scores that go from each node to its neighbours, in fixed point: sums of integers do not depend on their order, so the
// executors agree to the last bit.
#pragma once

#include "libs/sampling/sample_bodies.hpp"

namespace penstock::sampling {

inline constexpr double score_one = static_cast<double>(u64{1} << 61);  ///< all scores add up to 2 at most

/// A group to a node: a share of its score to each neighbour; of a graph's lists of incoming edges.
struct push_scores {
  edge_lists lists;
  u64 const* scores;  ///< [targets], or null: 1 to each
  u64* sums;          ///< [sources]
  u64* found_problem;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 node = range.first; node < range.last; node += range.step) {
      const edge_list list = lists.list_of(node, found_problem);
      if (list.length == 0) continue;
      const u64 share = scores != nullptr ? scores[node] / list.length : 1;
      for (u64 at = index_in(g); at < list.length; at += size(g)) {
        const u64 neighbor = lists.neighbors[list.first + at];
        if (neighbor >= lists.sources) {
          report_problem(found_problem, problem::neighbor, list.first + at);
        } else {
          device_ref<u64>(sums[neighbor]).fetch_add(share, relaxed);
        }
      }
    }
  }
};

/// The end of an iteration: score = least + damping * sum, and the sums are 0 again.
struct settle_scores {
  u64 nodes;
  u64 least;
  u64 damping;  ///< times 2^64
  u64* scores;
  u64* sums;
  u64* change;  ///< what all scores changed by, over 2^8

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    u64 changed = 0;
    each_row(g, range, nodes, [&](u64 k) {
      const u64 score = least + high_product(sums[k], damping);
      changed += (score > scores[k] ? score - scores[k] : scores[k] - score) >> 8;
      scores[k] = score;
      sums[k] = 0;
    });
    if (changed != 0) device_ref<u64>(*change).fetch_add(changed, relaxed);
  }
};

}  // namespace penstock::sampling
