// What lies on a volume, read where it lies: its members for a cache, and the arrays of a graph behind one.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/media/media_options.hpp"
#include "libs/media/shared_media.hpp"
#include "libs/volume/volume_graph.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"

#include <functional>
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

/// The members as a cache reads them: namespaces of their drives, or files, which become namespaces of what `software` makes.
volume_spec members_of(volumes::volume const& all, bool direct, std::function<software_controller&()> const& software);

/// Queue pairs for a cache over a volume that is on a drive, of `wanted` (0: one for each unit): its members hold some from the
/// last one down, and the cache takes the first. Throws bad_input, naming `name`, where none is left.
u32 queues_beside_members(executor const& on, volumes::volume const& all, u32 wanted, std::string const& name);

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
  std::shared_ptr<volumes::volume_file const> file_;  ///< keeps the volume
  std::unique_ptr<software_controller> files_;
  std::vector<u64> origins_, counts_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::media
