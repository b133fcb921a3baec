// A graph opened on an executor: its offsets where kernels run, its edges and weights wherever they were placed.
#pragma once

#include "libs/analytics/edge_lists.hpp"
#include "libs/analytics/graph_choices.hpp"
#include "libs/analytics/subgraph_copies.hpp"
#include "libs/graph/folder_edges.hpp"
#include "libs/media/modelled_media.hpp"
#include "libs/media/placed_array.hpp"
#include "libs/media/volume_media.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace penstock::analytics {

/// Lines that the lanes of one group may wait for at once: the piece of a list that they read together, cut by a line's end.
inline constexpr u64 pins_per_group = 2;

/// Lists of the edges that lead to each vertex, read in place.
struct incoming_lists {
  incoming_lists(executor& on, graph::graph_folder const& of, graph_options const& options);

  graph::graph_folder graph;
  media::placed_array edges;
  buffer<u64> copied_offsets;  ///< none on a CPU

  u64 const* offsets() const { return copied_offsets.size() != 0 ? copied_offsets.data() : graph.offsets().data(); }
};

/// Outlives no reference that it is made of. For one thread.
template <class Id>
class opened_graph {
 public:
  /// `weighted`: weights are read beside the edges, and take half of the cache. Throws bad_input for a graph without them.
  opened_graph(graph_options const& options, graph::graph_folder const& folder, executor& on, bool weighted = false);

  u64 vertices() const { return folder_.vertices(); }
  executor& on() const { return on_; }
  graph::graph_folder const& folder() const { return folder_; }
  graph_options const& options() const { return options_; }
  u64 longest_list() const { return longest_list_; }
  bool is_weighted() const { return weights_.has_value(); }
  bool is_cpu() const { return on_.kind() == executor_kind::cpu; }
  bool is_resident() const { return edges_.cache() == nullptr; }
  /// Whether single edges cost little more than themselves: where lists are read in place, or once their cache has all lines.
  /// In a smaller cache the first edges of all vertices are on as many lines as all edges are.
  bool reads_single_edges() const;
  /// Whether lists are to be read in the order in which they lie. Those that share a line are read together then: without it a
  /// line is fetched once for each of them. Over a link, too, reads that go up through memory are faster: by a half for
  /// shortest paths of urand:22, where pages of 4 KiB are translated for the GPU.
  bool wants_order() const { return !is_resident() || (!is_cpu() && options_.placement != "hbm"); }

  array_view<Id> edges() const { return edges_.view<Id>(); }
  /// [vertices + 1], where kernels run.
  u64 const* offsets() const { return is_cpu() ? folder_.offsets().data() : offsets_.data(); }
  template <class Weight>
  array_view<Weight> weights() const {
    return copies_ ? copies_->template weights<Weight>() : weights_->view<Weight>();
  }

  /// Lists of incoming edges: those of an undirected graph, or of a directed one's transpose once it was opened.
  bool has_incoming() const { return !folder_.directed() || incoming_; }
  /// REQUIRES: the lists are read in place.
  void open_incoming() { incoming_.emplace(on_, folder_, options_); }
  /// nullptr: not opened.
  incoming_lists const* incoming() const { return incoming_ ? &*incoming_ : nullptr; }

  /// Of placement "subgraph"; nullptr for others.
  subgraph_copies<Id>* copies() { return copies_ ? &*copies_ : nullptr; }
  subgraph_copies<Id> const* copies() const { return copies_ ? &*copies_ : nullptr; }
  /// What the arrays have in common where drives are modelled or a volume is read; nullptr where they have nothing.
  media::shared_media* media() const { return media_.get(); }
  std::vector<media::placed_array const*> arrays() const;
  std::string engine() const;

  /// No more groups than the caches have lines for, on the SMs that modelled drives leave. `lines_each`: of a cache, that there
  /// should be for each group.
  launch_limits limits(u64 lines_each = 2 * pins_per_group) const;
  /// Throws penstock::error when what was read is not what lies there.
  void check_faults();
  /// As it was when it was opened, where the GPU has got pages of it meanwhile.
  void reset();

  /// A value in the executor's local memory.
  template <class T>
  T read(T const* at) const {
    T value;
    on_.memory().read(&value, at, sizeof value);
    return value;
  }
  template <class T>
  void write(T* at, T value) const {
    on_.memory().write(at, &value, sizeof value);
  }

 private:
  graph_options const& options_;
  graph::graph_folder const& folder_;
  executor& on_;
  std::unique_ptr<media::shared_media> media_;
  media::placed_array edges_;
  std::optional<media::placed_array> weights_;
  std::optional<subgraph_copies<Id>> copies_;
  std::optional<incoming_lists> incoming_;
  buffer<u64> offsets_;  ///< none on a CPU
  u64 longest_list_ = 0;
};

extern template class opened_graph<std::int32_t>;
extern template class opened_graph<std::int64_t>;

}  // namespace penstock::analytics
