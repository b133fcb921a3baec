// The arrays of a graph on modelled drives, behind one cache.
#pragma once

#include "apps/analytics/graph_options.hpp"
#include "apps/graph/graph_folder.hpp"
#include "apps/regular/array_store.hpp"

namespace penstock::apps {

class modelled_media {
 public:
  /// Copies the arrays to the drives, as the layout has it. Throws penstock::error for drives that cannot be.
  modelled_media(executor& on, std::vector<graph::array_place const*> const& arrays, graph_options const& options);

  line_cache& cache() { return *cache_; }
  line_cache const& cache() const { return *cache_; }
  template <class T>
  array_view<T> view(u32 array) const {
    return cache_->array<T>(array, store_->origin(array), counts_[array]);
  }

  std::string engine() const { return store_->engine(); }
  /// What the drives were specified to read together.
  double bytes_per_second() const { return store_->specified_rate(false); }
  /// SMs that they leave to kernels; 0 on the CPU: all threads.
  u32 units_left() const;

  /// They serve in between. CUDA: meanwhile nothing may be allocated or freed, and no kernel be launched for the first time.
  void start() { store_->start(); }
  void stop() { store_->stop(); }

 private:
  executor& on_;
  std::vector<u64> counts_;
  std::unique_ptr<regular::array_store> store_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::apps
