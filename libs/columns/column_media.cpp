#include "libs/columns/column_media.hpp"

#include "libs/graph/file.hpp"
#include "libs/media/modelled_media.hpp"
#include "libs/media/volume_media.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <map>

namespace penstock::columns {
namespace {

graph::array_place bytes_at(extent const& where) { return {where.path, where.offset, 'u', 1, where.bytes}; }

void check_extent(extent const& where) {
  const u64 size = where.stored ? where.stored->size() : graph::file::open(where.path).size();
  if (where.offset > size || where.bytes > size - where.offset) {
    throw_bad_input("open", where.path,
                    "it has " + std::to_string(size) + " bytes, and its columns need " +
                        std::to_string(where.offset + where.bytes) + ": it was cut short; write it anew");
  }
}

/// What messages call it, whichever of its files they are about.
std::string name_of(volumes::volume const& all) {
  std::string name = "the volume on ";
  for (u32 m = 0; m < all.members(); ++m) name += (m == 0 ? "" : ", ") + all.name_of(m);
  return name;
}

}  // namespace

std::unique_ptr<executor> open_executor_for(std::vector<extent> const& extents, media::media_options const& options,
                                            bool with_kernels) {
  std::vector<volumes::volume const*> from;
  for (extent const& each : extents) {
    if (each.stored != nullptr) from.push_back(&each.stored->from().all);
  }
  return media::open_executor_for(from, extents.empty() ? "a table" : extents.front().path, options, with_kernels);
}

column_media::column_media(executor& on, std::vector<extent> const& extents, media::media_options const& options)
    : extents_(extents) {
  for (extent const& each : extents_) check_extent(each);
  if (extents_.empty()) return;
  if (options.placement == "storage" && options.media != "file") {
    std::vector<graph::array_place> places;
    places.reserve(extents_.size());
    for (extent const& each : extents_) places.push_back(bytes_at(each));
    std::vector<graph::array_place const*> all;
    all.reserve(places.size());
    for (auto const& place : places) all.push_back(&place);
    modelled_ = std::make_unique<media::modelled_media>(on, all, options);
    return;
  }
  if (options.placement == "storage") {
    open_behind_cache(on, options);
    return;
  }
  u64 all = 0;
  for (extent const& each : extents_) all += each.bytes;
  for (extent const& each : extents_) {
    // What all have of a cache: each its part of the bytes, and room for some lines.
    const double share = static_cast<double>(each.bytes) / static_cast<double>(std::max<u64>(all, 1));
    const u64 cache =
        std::max<u64>(static_cast<u64>(static_cast<double>(options.cache_bytes) * share), 64 * options.line_bytes);
    placed_.push_back(std::make_unique<media::placed_array>(on, bytes_at(each), options, cache));
  }
}

column_media::~column_media() = default;

void column_media::open_behind_cache(executor& on, media::media_options const& options) {
  controllers_ = std::make_unique<media::cache_controllers>(on, options);
  std::vector<dataset_spec> datasets;
  std::map<volumes::shared_volume const*, u32> volumes;  // a dataset for all that is on one
  for (extent const& each : extents_) {
    if (each.stored == nullptr) {
      cached_.push_back({static_cast<u32>(datasets.size()), each.offset});
      datasets.push_back(
          {.name = each.path, .bytes = each.offset + each.bytes, .volume = {.members = {controllers_->file(each.path)}}});
      continue;
    }
    volumes::volume const& all = each.stored->from().all;
    const auto [at, is_new] = volumes.try_emplace(&each.stored->from(), static_cast<u32>(datasets.size()));
    if (is_new) {
      datasets.push_back({.name = name_of(all), .volume = controllers_->volume(all, each.path)});
    }
    volumes::stored_file const& file = each.stored->file();
    datasets[at->second].bytes = std::max(datasets[at->second].bytes, file.sums_begin);
    cached_.push_back({at->second, file.file_begin + each.offset});
  }
  datasets_ = static_cast<u32>(datasets.size());
  cache_ = controllers_->cache(datasets);
}

array_view<u8> column_media::view(u32 extent) const {
  if (cache_) return cache_->array<u8>(cached_[extent].dataset, cached_[extent].begin, extents_[extent].bytes);
  if (modelled_) return modelled_->view<u8>(extent);
  return placed_[extent]->view<u8>();
}

void column_media::check() {
  if (cache_) cache_->check_faults();
  if (modelled_) modelled_->cache().check_faults();
  for (auto const& each : placed_) each->check();
}

u64 column_media::bytes_moved() const {
  u64 moved = 0;
  for (u32 k = 0; k < datasets_; ++k) moved += cache_->stats(k).bytes_moved;
  for (u32 k = 0; k < extents_.size(); ++k) {
    if (modelled_) moved += modelled_->cache().stats(k).bytes_moved;
    if (!placed_.empty() && placed_[k]->cache() != nullptr) moved += placed_[k]->stats().bytes_moved;
  }
  return moved;
}

void column_media::start() {
  if (modelled_) modelled_->start();
}
void column_media::stop() {
  if (modelled_) modelled_->stop();
}

launch_limits column_media::limits() const { return {0, modelled_ ? modelled_->units_left() : 0}; }

}  // namespace penstock::columns
