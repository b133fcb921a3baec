// The bytes of a table's files for kernels: mapped, copied to the GPU, or behind one cache for all of them, on volumes, too.
#pragma once

#include "libs/columns/column_table.hpp"
#include "libs/media/placed_array.hpp"
#include "penstock/executor/launch.hpp"

#include <memory>
#include <vector>

namespace penstock::media {
class cache_controllers;
}

namespace penstock::columns {

/// An executor that reaches all extents. Throws bad_input where none does.
std::unique_ptr<executor> open_executor_for(std::vector<extent> const& extents, media::media_options const& options,
                                            bool with_kernels);

class column_media {
 public:
  /// `on` outlives it. REQUIRES: for extents on volumes, files behind a cache (placement storage).
  column_media(executor& on, std::vector<extent> const& extents, media::media_options const& options);
  ~column_media();

  array_view<u8> view(u32 extent) const;
  /// Throws what reads have met.
  void check();
  /// Into the cache so far, all extents.
  u64 bytes_moved() const;
  u64 bytes_of(u32 extent) const { return extents_[extent].bytes; }
  /// Where it begins in what is cut into lines: its file, or its volume.
  u64 begin_of(u32 extent) const { return cache_ ? cached_[extent].begin : extents_[extent].offset; }
  /// Emulated drives, which a resident kernel may serve between `start` and `stop`: nothing is allocated then, and no kernel
  /// launched for the first time.
  bool is_modelled() const { return modelled_ != nullptr; }
  void start();
  void stop();
  launch_limits limits() const;

 private:
  struct cached_extent {
    u32 dataset = 0;
    u64 begin = 0;
  };

  void open_behind_cache(executor& on, media::media_options const& options);

  std::vector<extent> extents_;
  std::unique_ptr<media::cache_controllers> controllers_;
  u32 datasets_ = 0;
  std::vector<cached_extent> cached_;
  std::unique_ptr<line_cache> cache_;
  std::unique_ptr<media::shared_media> modelled_;
  std::vector<std::unique_ptr<media::placed_array>> placed_;
};

}  // namespace penstock::columns
