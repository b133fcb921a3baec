// The arrays of a graph on a volume, read where they lie.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/media/media_options.hpp"
#include "libs/media/shared_media.hpp"
#include "libs/volume/volume_graph.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"

#include <memory>
#include <vector>

namespace penstock::media {

/// The executor for a graph, which reaches the drives of its volume if it is on some. Throws bad_input where it cannot: a GPU,
/// or several drives.
std::unique_ptr<executor> open_executor_for(graph::graph_folder const& graph, media_options const& options, bool has_kernels);

class volume_media final : public shared_media {
 public:
  /// REQUIRES: all arrays are of one volume; the executor is of open_executor_for. Throws penstock::error for options that
  /// cannot be.
  volume_media(executor& on, std::vector<graph::array_place const*> const& arrays, media_options const& options);

  line_cache& cache() override { return *cache_; }
  u64 origin(u32 array) const override { return origins_[array]; }
  u64 count(u32 array) const override { return counts_[array]; }
  std::string engine() const override;

 private:
  volume_spec members(executor& on, volumes::volume const& all, media_options const& options);

  std::shared_ptr<volumes::volume_file const> file_;  ///< keeps the volume
  std::unique_ptr<software_controller> files_;
  std::vector<u64> origins_, counts_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::media
