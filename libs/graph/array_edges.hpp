// Edges that are in memory already, as two arrays of ids and perhaps one of weights (SciPy's coordinate form).
#pragma once

#include "libs/graph/edge_source.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace penstock::graph {

/// Id: int32 or int64. Does not own the arrays. REQUIRES: from, to and (unless empty) weights are equally long.
template <class Id>
class array_edges final : public edge_source {
 public:
  array_edges(u64 vertices, std::span<Id const> from, std::span<Id const> to, std::span<u32 const> weights, weight_type type,
              std::string name)
      : vertices_(vertices), from_(from), to_(to), weights_(weights), type_(type), name_(std::move(name)) {}

  u64 vertices() const override { return vertices_; }
  weight_type weights() const override { return type_; }
  u64 blocks() const override { return (from_.size() + block_edges - 1) / block_edges; }

  void produce(u64 block, edge_sink const& sink) const override {
    u64 const begin = block * block_edges, end = std::min<u64>(begin + block_edges, from_.size());
    std::vector<edge> batch;
    for (u64 i = begin; i < end; ++i) {
      batch.push_back({checked(from_[i], i), checked(to_[i], i), type_ == weight_type::none ? 0 : weights_[i]});
      if (batch.size() == 2048) sink(batch), batch.clear();
    }
    if (!batch.empty()) sink(batch);
  }

 private:
  static constexpr u64 block_edges = u64{1} << 18;

  u64 checked(Id id, u64 position) const {
    if (id < 0 || static_cast<u64>(id) >= vertices_)
      throw_bad_input("read", name_,
                      "edge " + std::to_string(position) + " names vertex " + std::to_string(id) + ", the graph has " +
                          std::to_string(vertices_) + ": correct the ids or the count");
    return static_cast<u64>(id);
  }

  u64 vertices_;
  std::span<Id const> from_, to_;
  std::span<u32 const> weights_;
  weight_type type_;
  std::string name_;
};

}  // namespace penstock::graph
