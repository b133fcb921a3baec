// Neighbour sampling (Hamilton et al., NIPS 2017) by the threads of an executor, over lists of neighbours that lie anywhere:
// hop after hop, some neighbours of each node that the last hop found, each node once.
#pragma once

#include "libs/sampling/sampling_launches.hpp"
#include "penstock/rows/row_array.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace penstock::sampling {

/// An array of numbers, and how wide each is.
struct number_array {
  row_array* array = nullptr;  ///< null: there is none
  u32 width = 8;               ///< bytes
};

/// The lists of one edge type: of each target the sources, `neighbors[pointers[v]]` up to `neighbors[pointers[v + 1]]`.
struct edge_type {
  u32 target = 0, source = 0;  ///< node types
  number_array pointers, neighbors;
  number_array weights;                 ///< of edges
  number_array edge_times, node_times;  ///< of edges, or of the sources
};

struct node_seeds {
  std::int64_t const* nodes = nullptr;  ///< where the executor's kernels read them
  u64 count = 0;
};

struct sample_request {
  std::vector<node_seeds> seeds;             ///< of each node type
  std::int64_t const* seed_times = nullptr;  ///< of all seeds, type by type
  std::vector<std::vector<u32>> fanouts;     ///< [edge type][hop], or all_neighbors
  bool replace = false;
  bool disjoint = false;  ///< each seed has a tree of its own
  bool latest = false;
  bool induced = false;  ///< then all edges among the nodes
  u64 seed = 0, call = 0;
  void* stream = nullptr;
  u32 units = 0;  ///< multiprocessors at most; 0: all
};

struct sample_sizes {
  std::vector<std::vector<u64>> nodes;  ///< [node type][hop + 1], the seeds first
  std::vector<std::vector<u64>> edges;  ///< [edge type][hop]; of induced ones all in the first
};

/// What one sample leaves in memory is taken from here before the next one. Calls take turns.
///
/// Deterministic: the same request over the same lists has the same outcome, on every executor. Nodes are numbered hop by hop,
/// in each by edge type, and in each in the order of the edges that led to them first.
class neighbor_sampler {
 public:
  /// nodes: of each type. REQUIRES: the arrays and the executor outlive it; arrays have as many elements as their lists say.
  neighbor_sampler(executor& on, std::vector<u64> nodes, std::vector<edge_type> types);
  ~neighbor_sampler();
  neighbor_sampler(neighbor_sampler const&) = delete;
  neighbor_sampler& operator=(neighbor_sampler const&) = delete;

  /// Returns when the sizes are known. Throws penstock::error: bad_input for a seed that is no node, lists that are damaged, a
  /// weight that is none, more than 2^31 edges of a hop; world for what cannot be read.
  sample_sizes sample(sample_request const& request);

  // CUDA: on the stream of the last sample. REQUIRES: `to` has room for what sample() said.
  void take_nodes(u32 type, std::int64_t* nodes, std::int64_t* trees);
  void take_edges(u32 type, std::int64_t* rows, std::int64_t* columns, std::int64_t* edges);

  struct state;

 private:
  std::unique_ptr<state> state_;
};

/// Calls launch(lists) with the arrays of a type lent to kernels, and throws what they met.
void with_lists(std::vector<edge_type> const& types, std::vector<u64> const& nodes, void* stream,
                std::function<void(std::vector<edge_lists> const&)> const& launch);
/// Throws penstock::error (bad_input) for the word that kernels reported.
void throw_problem(u64 word, std::string const& operation);

}  // namespace penstock::sampling
