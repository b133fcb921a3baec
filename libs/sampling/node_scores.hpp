// How often nodes are likely to be sampled (zero-copy dissertation, section 4.2.1).
#pragma once

#include "libs/sampling/neighbor_sampler.hpp"
#include "libs/sampling/score_bodies.hpp"

#include <span>

namespace penstock::sampling {

/// Scores over lists of incoming edges: each node gets shares of the scores of those that it leads to. CUDA: on the executor's
/// stream.
class node_scores {
 public:
  /// REQUIRES: `lists` are of one node type; the arrays and the executor outlive it.
  node_scores(executor& on, u64 nodes, edge_type const& lists);

  /// How many edges lead out of each node.
  std::vector<double> count_out_degrees();
  /// The start of reverse PageRank: 1 / nodes each; of `weighted` ones (Algorithm 2) nodes / weighted.size() times that. Throws
  /// penstock::error, bad_input, for a number that is no node.
  void start(std::span<std::int64_t const> weighted);
  /// One iteration: (1 - damping) / nodes + damping * the sum of score / in-degree over the nodes that it leads to. Returns the
  /// sum of all changes.
  double step(double damping);
  std::vector<double> values() const;

 private:
  void push(u64 const* scores);

  executor& on_;
  u64 nodes_;
  edge_type lists_;
  buffer<u64> scores_, sums_, words_;  ///< a problem, the change
};

}  // namespace penstock::sampling
