#include "libs/media/modelled_media.hpp"

#include "libs/media/names.hpp"
#include "penstock/host/error.hpp"

namespace penstock::media {

modelled_media::modelled_media(executor& on, std::vector<graph::array_place const*> const& arrays, media_options const& options)
    : on_(on), drives_(options.drives) {
  std::vector<stored_file> files;
  for (graph::array_place const* each : arrays) {
    array_file file;
    file.path = each->path;
    file.type = {each->kind, each->item_bytes};
    file.shape = {each->count};
    file.elements = each->count;
    file.origin = each->data_offset;
    files.push_back({file, false});
    counts_.push_back(each->count);
  }
  array_store_options media;
  media.media = options.media;
  media.drives = options.drives;
  media.place = options.media_place;
  media.layout = parse_layout(options.layout);
  media.server_units = options.server_units;
  media.cache_queues = options.queues;
  store_ = std::make_unique<array_store>(on, media, files, options.progress);
  cache_options with = cache_options_of(options, options.cache_bytes);
  with.queues = store_->cache_queues();
  cache_ = std::make_unique<line_cache>(on, store_->datasets(), with);
}

u32 modelled_media::units_left() const { return on_.kind() == executor_kind::cuda ? store_->units_left() : 0; }

}  // namespace penstock::media
