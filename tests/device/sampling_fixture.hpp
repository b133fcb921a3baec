// The host's half of the tests of neighbor_sampler: graphs in arrays, what a sample gives, and an executor that notices what is
// written behind the end of its memory.
#pragma once

#include "libs/sampling/neighbor_sampler.hpp"
#include "support/test_context.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace penstock::test {

/// Lists of neighbours of one edge type in arrays of an executor.
class lists_in_arrays {
 public:
  lists_in_arrays(executor& on, std::vector<u64> const& pointers, std::vector<u64> const& neighbors,
                  placement where = placement::host)
      : pointers_(pointers), neighbors_(neighbors), pointer_array_(open(on, pointers_, placement::host)),
        neighbor_array_(open(on, neighbors_, where)) {}

  void add_weights(executor& on, std::vector<double> const& weights) {
    weights_ = weights;
    weight_array_ = open(on, weights_, placement::host);
  }
  void add_times(executor& on, std::vector<std::int64_t> const& times) {
    times_ = times;
    time_array_ = open(on, times_, placement::host);
  }
  sampling::edge_type type(u32 target, u32 source) const {
    sampling::edge_type all{target, source, {pointer_array_.get(), 8}, {neighbor_array_.get(), 8}, {}, {}, {}};
    if (weight_array_) all.weights = {weight_array_.get(), 8};
    if (time_array_) all.edge_times = {time_array_.get(), 8};
    return all;
  }
  u64 neighbor(u64 edge) const { return neighbors_[edge]; }

 private:
  template <class T>
  static std::unique_ptr<row_array> open(executor& on, std::vector<T>& from, placement where) {
    row_array_options options;
    options.where = where;
    options.cache.bytes = 64 * 512;
    options.cache.line_bytes = 512;
    row_source source;
    source.memory = from.data();
    return std::make_unique<row_array>(on, row_shape{from.size(), sizeof(T)}, source, options);
  }

  std::vector<u64> pointers_, neighbors_;
  std::vector<double> weights_;
  std::vector<std::int64_t> times_;
  std::unique_ptr<row_array> pointer_array_, neighbor_array_, weight_array_, time_array_;
};

struct taken_sample {
  std::vector<std::vector<u64>> node_counts, edge_counts;
  std::vector<std::vector<std::int64_t>> nodes, trees;          ///< of each type
  std::vector<std::vector<std::int64_t>> rows, columns, edges;  ///< of each edge type
  bool operator==(taken_sample const&) const = default;
};

inline taken_sample take(sampling::neighbor_sampler& sampler, sampling::sample_request const& request) {
  const sampling::sample_sizes sizes = sampler.sample(request);
  taken_sample all{sizes.nodes, sizes.edges, {}, {}, {}, {}, {}};
  for (u32 type = 0; type < sizes.nodes.size(); ++type) {
    const u64 count = std::accumulate(sizes.nodes[type].begin(), sizes.nodes[type].end(), u64{0});
    all.nodes.emplace_back(count);
    all.trees.emplace_back(request.disjoint ? count : 0);
    sampler.take_nodes(type, all.nodes[type].data(), request.disjoint ? all.trees[type].data() : nullptr);
  }
  for (u32 type = 0; type < sizes.edges.size(); ++type) {
    const u64 count = std::accumulate(sizes.edges[type].begin(), sizes.edges[type].end(), u64{0});
    for (auto* each : {&all.rows, &all.columns, &all.edges}) each->emplace_back(count);
    sampler.take_edges(type, all.rows[type].data(), all.columns[type].data(), all.edges[type].data());
  }
  return all;
}

/// Two node types whose lists lead to both: of type 0 to each other, and between 0 and 1.
struct two_types {
  static constexpr u64 nodes = 3000;

  /// `funnel`: all edges lead to three nodes, which all threads insert at once.
  two_types(executor& on, bool funnel, bool weighted, bool timed, placement where) {
    for (u64 t = 0; t < 3; ++t) {
      std::vector<u64> pointers{0}, neighbors;
      std::vector<double> weights;
      std::vector<std::int64_t> times;
      for (u64 v = 0; v < nodes; ++v) pointers.push_back(pointers.back() + random_word(t, 1, v) % 30);
      for (u64 e = 0; e < pointers.back(); ++e) {
        const u64 drawn = random_word(t, 2, e);
        neighbors.push_back(funnel ? nodes - 1 - drawn % 3 : drawn % nodes);
        weights.push_back(static_cast<double>(drawn >> 40 & 3));
        times.push_back(static_cast<std::int64_t>(drawn >> 50 & 7));
      }
      lists.push_back(std::make_unique<lists_in_arrays>(on, pointers, neighbors, where));
      if (weighted) lists.back()->add_weights(on, weights);
      if (timed) lists.back()->add_times(on, times);
    }
  }
  std::vector<sampling::edge_type> types() const { return {lists[0]->type(0, 0), lists[1]->type(0, 1), lists[2]->type(1, 0)}; }

  std::vector<std::unique_ptr<lists_in_arrays>> lists;
};

/// A CPU executor's memory with a guard behind each allocation.
class guarded_memory : public memory_resource {
 public:
  explicit guarded_memory(memory_resource& inner) : inner_(inner) {}

  void* allocate(memory_kind kind, u64 bytes) override {
    void* const address = inner_.allocate(kind, bytes + guard_bytes);
    std::memset(static_cast<u8*>(address) + bytes, guard_byte, guard_bytes);
    return address;
  }
  void deallocate(memory_kind kind, void* address, u64 bytes) noexcept override {
    u8 const* const guard = static_cast<u8 const*>(address) + bytes;
    if (std::any_of(guard, guard + guard_bytes, [](u8 byte) { return byte != guard_byte; })) ++broken_;
    inner_.deallocate(kind, address, bytes + guard_bytes);
  }
  void write(void* to, void const* from, u64 bytes) override { inner_.write(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { inner_.read(to, from, bytes); }

  u64 broken() const { return broken_; }

 private:
  static constexpr u64 guard_bytes = 1 << 16;
  static constexpr u8 guard_byte = 0xa5;

  memory_resource& inner_;
  std::atomic<u64> broken_{0};
};

class guarded_executor : public executor {
 public:
  executor_kind kind() const override { return inner_->kind(); }
  std::string device() const override { return inner_->device(); }
  memory_resource& memory() override { return memory_; }
  u32 units() const override { return inner_->units(); }
  void synchronize() override { inner_->synchronize(); }
  void run(u64 items, u64 chunk, std::function<void(u64, u64)> const& work) override { inner_->run(items, chunk, work); }

  /// Of memory that was given back.
  u64 guards_broken() const { return memory_.broken(); }

 private:
  std::unique_ptr<executor> inner_ = open_executor("cpu", 2);
  guarded_memory memory_{inner_->memory()};
};

}  // namespace penstock::test
