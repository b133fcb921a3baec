// The arrays of a graph on modelled drives, behind one cache.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/media/array_store.hpp"
#include "libs/media/media_options.hpp"
#include "libs/media/shared_media.hpp"

namespace penstock::media {

class modelled_media final : public shared_media {
 public:
  /// Copies the arrays to the drives, as the layout has it. Throws penstock::error for drives that cannot be.
  modelled_media(executor& on, std::vector<graph::array_place const*> const& arrays, media_options const& options);

  line_cache& cache() override { return *cache_; }
  u64 origin(u32 array) const override { return store_->origin(array); }
  u64 count(u32 array) const override { return counts_[array]; }
  std::string engine() const override { return store_->engine(); }
  double bytes_per_second() const override { return store_->specified_rate(false); }
  u32 modelled_drives() const override { return drives_; }
  u32 units_left() const override;
  void start() override { store_->start(); }
  void stop() override { store_->stop(); }

 private:
  executor& on_;
  u32 drives_;
  std::vector<u64> counts_;
  std::unique_ptr<array_store> store_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::media
