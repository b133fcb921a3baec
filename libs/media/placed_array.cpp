#include "libs/media/placed_array.hpp"

#include "libs/graph/file.hpp"
#include "libs/media/names.hpp"

#include "penstock/host/error.hpp"

namespace penstock::media {
namespace {

std::shared_ptr<managed_array> make_managed([[maybe_unused]] executor& on, graph::array_place const& place) {
#if defined(PENSTOCK_HAS_CUDA)
  return std::make_shared<managed_array>(on, place);
#else
  throw_bad_input("open", place.path, "this program was compiled without nvcc: placement managed needs a GPU");
#endif
}

}  // namespace

placed_array::placed_array(executor& on, graph::array_place const& place, media_options const& options, u64 cache_bytes)
    : elements_(place.count) {
  if (options.placement == "managed") {
    managed_ = make_managed(on, place);
    return;
  }
  if (options.placement == "pinned") {
    pinned_ = {on.memory(), memory_kind::shared, place.count * place.item_bytes};
    graph::file::open(place.path).read(place.data_offset, {pinned_.data(), pinned_.size()});
    return;
  }
  const placement where = parse_placement(options.placement == "subgraph" ? "host" : options.placement);
  if (options.drive) {
    if (where != placement::storage) {
      throw_bad_input("open", place.path, "a drive at placement " + options.placement + ": choose placement storage");
    }
    open_on_drive(*options.drive, place, cache_options_of(options, cache_bytes));
    return;
  }
  if (where == placement::storage) {
    stored_array_options with;
    with.cache = cache_options_of(options, cache_bytes);
    with.engine = parse_engine(options.engine);
    with.direct = options.direct;
    with.controller_threads = options.threads;
    stored_.emplace(on, place.path, with);
    return;
  }
  if (elements_ == 0) return;
  row_array_options with;
  with.where = where;
  with.cache = cache_options_of(options, cache_bytes);
  with.engine = parse_engine(options.engine);
  with.controller_threads = options.threads;
  rows_.emplace(on, row_shape{.rows = elements_, .row_bytes = place.item_bytes},
                row_source{.path = place.path, .offset = place.data_offset}, with);
}

void placed_array::open_on_drive(drive_place const& drive, graph::array_place const& place, cache_options const& with) {
  dataset_spec data;
  data.name = place.path + " on namespace " + std::to_string(drive.namespace_id);
  data.bytes = drive.offset + place.count * place.item_bytes;
  data.volume.members = {{drive.owner, drive.namespace_id}};
  on_drive_ = std::make_unique<line_cache>(*drive.on, std::vector{data}, with);
  origin_ = drive.offset;
  drive_engine_ = drive.owner->engine();
}

}  // namespace penstock::media
