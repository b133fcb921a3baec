// What lies on a volume, read where it lies: its members for a cache, and the arrays of a graph behind one.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/media/media_options.hpp"
#include "libs/media/shared_media.hpp"
#include "libs/volume/running_drive.hpp"
#include "libs/volume/volume_graph.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock::media {

/// The executor for what lies on volumes, and is called `name`: it reaches their drives if they are on some. Throws bad_input
/// where it cannot: a GPU, or several drives.
std::unique_ptr<executor> open_executor_for(std::vector<volumes::volume const*> const& from, std::string const& name,
                                            media_options const& options, bool has_kernels);
/// The same for a graph, wherever it lies.
std::unique_ptr<executor> open_executor_for(graph::graph_folder const& graph, media_options const& options, bool has_kernels);

/// What serves a cache over files and volumes, as its datasets need it: a controller for files, and queues of the drive that
/// volumes are on. Outlives the cache.
class cache_controllers {
 public:
  cache_controllers(executor& on, media_options const& options);

  volume_spec::member file(std::string const& path);
  /// Throws bad_input, naming `name`, where the drive has no queue left.
  volume_spec volume(volumes::volume const& all, std::string const& name);
  /// Makes the cache.
  std::unique_ptr<line_cache> cache(std::vector<dataset_spec> const& datasets);
  std::string engine() const { return files_ ? files_->engine() : drive_->engine(); }

 private:
  executor& on_;
  software_options serving_;  ///< of files
  bool direct_;
  cache_options with_;
  std::unique_ptr<software_controller> files_;
  std::unique_ptr<volumes::drive_share> drive_;
};

class volume_media final : public shared_media {
 public:
  /// REQUIRES: all arrays are of one volume; the executor is of open_executor_for. Throws penstock::error for options that
  /// cannot be.
  volume_media(executor& on, std::vector<graph::array_place const*> const& arrays, media_options const& options);

  line_cache& cache() override { return *cache_; }
  u64 origin(u32 array) const override { return origins_[array]; }
  u64 count(u32 array) const override { return counts_[array]; }
  std::string engine() const override { return controllers_.engine(); }

 private:
  std::shared_ptr<volumes::volume_file const> file_;  ///< keeps the volume
  cache_controllers controllers_;
  std::vector<u64> origins_, counts_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::media
