// An array of a graph, in its file, wherever the user wants it to be read from.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/media/managed_array.hpp"
#include "libs/media/media_options.hpp"
#include "libs/media/shared_media.hpp"
#include "penstock/rows/row_array.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <utility>

namespace penstock::media {

class placed_array {
 public:
  /// Throws penstock::error for options that cannot be, a placement that the executor does not have, a file that cannot be
  /// read.
  placed_array(executor& on, graph::array_place const& place, media_options const& options, u64 cache_bytes);

  /// One of those behind one cache, which outlives this.
  placed_array(shared_media& media, u32 array) : elements_(0), media_(&media), dataset_(array) {}

  template <class T>
  array_view<T> view() const {
    if (media_ != nullptr) return media_->view<T>(dataset_);
    if (stored_) return stored_->view<T>();
    if (on_drive_) return on_drive_->array<T>(0, origin_, elements_);
    if (rows_ && rows_->cache() != nullptr) return rows_->cache()->array<T>(0, rows_->cached_origin(), elements_);
    if (managed_) return {static_cast<T const*>(managed_->data()), elements_};
    if (pinned_.data() != nullptr) return {reinterpret_cast<T const*>(pinned_.data()), elements_};
    return {rows_ ? static_cast<T const*>(rows_->kernel_address()) : nullptr, elements_};
  }

  /// Throws penstock::error when what was read of it is not what lies there: a line that could not be brought, a file that
  /// became shorter.
  void check() {
    if (line_cache* const lines = cache(); lines != nullptr) lines->check_faults();
    if (rows_) rows_->check_file();
  }

  /// As it was when it was opened, where the GPU has got pages of it meanwhile.
  void reset() {
#if defined(PENSTOCK_HAS_CUDA)
    if (managed_) managed_->move_to_host();
#endif
  }

  /// nullptr where there is none: the array is read in place.
  line_cache const* cache() const {
    if (media_ != nullptr) return &media_->cache();
    if (rows_) return rows_->cache();
    if (on_drive_) return on_drive_.get();
    return stored_ ? &stored_->cache() : nullptr;
  }
  line_cache* cache() { return const_cast<line_cache*>(std::as_const(*this).cache()); }
  /// REQUIRES: it has a cache.
  cache_stats stats() const { return cache()->stats(dataset_); }
  std::string engine() const {
    if (media_ != nullptr) return media_->engine();
    if (rows_ && rows_->cache() != nullptr) return "lines copied by who misses them";
    if (on_drive_) return drive_engine_;
    return stored_ ? stored_->engine() : "none";
  }

 private:
  void open_on_drive(drive_place const& drive, graph::array_place const& place, cache_options const& with);

  u64 elements_;
  shared_media* media_ = nullptr;
  u32 dataset_ = 0;  ///< of its cache
  std::optional<stored_array> stored_;
  std::unique_ptr<line_cache> on_drive_;
  u64 origin_ = 0;  ///< on the drive
  std::string drive_engine_;
  std::optional<row_array> rows_;
  buffer<std::byte> pinned_;
  std::shared_ptr<managed_array> managed_;  ///< shared: where there is no CUDA, nobody knows how to end it
};

}  // namespace penstock::media
