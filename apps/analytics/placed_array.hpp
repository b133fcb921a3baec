// An array of a graph, in its file, wherever the user wants it to be read from.
#pragma once

#include "apps/analytics/graph_options.hpp"
#include "apps/graph/graph_folder.hpp"
#include "penstock/host/row_array.hpp"
#include "penstock/host/stored_array.hpp"

namespace penstock::apps {

class placed_array {
 public:
  /// Throws penstock::error for options that cannot be, a placement that the executor does not have, a file that cannot be
  /// read.
  placed_array(executor& on, graph::array_place const& place, graph_options const& options, u64 cache_bytes);

  template <class T>
  array_view<T> view() const {
    if (stored_) return stored_->view<T>();
    return {rows_ ? static_cast<T const*>(rows_->kernel_address()) : nullptr, elements_};
  }

  /// nullptr where there is none: the array is read in place.
  line_cache const* cache() const { return stored_ ? &stored_->cache() : nullptr; }
  line_cache* cache() { return stored_ ? &stored_->cache() : nullptr; }
  std::string engine() const { return stored_ ? stored_->engine() : "none"; }

 private:
  u64 elements_;
  std::optional<stored_array> stored_;
  std::optional<row_array> rows_;
};

}  // namespace penstock::apps
