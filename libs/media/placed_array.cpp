#include "libs/media/placed_array.hpp"

#include "libs/graph/file.hpp"

#include "penstock/host/error.hpp"

namespace penstock::apps {
namespace {

io_engine parse_engine(std::string const& name) {
  if (name == "auto") return io_engine::automatic;
  if (name == "io_uring") return io_engine::io_uring;
  if (name == "pread") return io_engine::pread;
  throw_bad_input("open", "engine " + name, "there is no such engine: choose auto, io_uring or pread");
}

directory_kind parse_directory(std::string const& name) {
  if (name == "auto") return directory_kind::automatic;
  if (name == "direct") return directory_kind::direct;
  if (name == "set") return directory_kind::set_associative;
  throw_bad_input("search", "a graph", "directory '" + name + "': there is no such directory; choose one of auto, direct, set");
}

constexpr char const* without_read_ahead = "read-ahead";

ablations parse_without(std::string const& name) {
  ablations without;
  if (name == "cache") without.cache = true;
  if (name == "coalescing") without.coalescing = true;
  if (name == "validation") without.validation = true;
  const bool some = without.cache || without.coalescing || without.validation;
  if (some || name == without_read_ahead || name == "nothing") return without;
  throw_bad_input("open", "a graph", "without '" + name + "': choose cache, coalescing, validation or read-ahead");
}

placement parse_placement(std::string const& name) {
  if (name == "storage") return placement::storage;
  if (name == "host" || name == "subgraph") return placement::host;
  if (name == "host-cached") return placement::host_cached;
  if (name == "hbm") return placement::hbm;
  throw_bad_input("open", "placement " + name,
                  "there is no such placement: choose storage, host, pinned, host-cached, hbm, managed or subgraph");
}

std::shared_ptr<managed_array> make_managed([[maybe_unused]] executor& on, graph::array_place const& place) {
#if defined(PENSTOCK_HAS_CUDA)
  return std::make_shared<managed_array>(on, place);
#else
  throw_bad_input("open", place.path, "this program was compiled without nvcc: placement managed needs a GPU");
#endif
}

}  // namespace

cache_options cache_options_of(graph_options const& options, u64 bytes) {
  cache_options cache;
  cache.bytes = bytes;
  cache.line_bytes = options.line_bytes;
  cache.directory = parse_directory(options.directory);
  cache.queues = options.queues;
  cache.queue_depth = options.queue_depth;
  cache.without = parse_without(options.without);
  if (options.without == without_read_ahead) cache.read_ahead_bytes = 0;
  return cache;
}

io_engine engine_of(graph_options const& options) { return parse_engine(options.engine); }

placed_array::placed_array(executor& on, graph::array_place const& place, graph_options const& options, u64 cache_bytes)
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
  const placement where = parse_placement(options.placement);
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
    with.engine = engine_of(options);
    with.direct = options.direct;
    with.controller_threads = options.threads;
    stored_.emplace(on, place.path, with);
    return;
  }
  if (elements_ == 0) return;
  row_array_options with;
  with.where = where;
  with.cache = cache_options_of(options, cache_bytes);
  with.engine = engine_of(options);
  with.controller_threads = options.threads;
  rows_.emplace(on, row_shape{.rows = elements_, .row_bytes = place.item_bytes},
                row_source{.path = place.path, .offset = place.data_offset}, with);
}

void placed_array::open_on_drive(graph_drive const& drive, graph::array_place const& place, cache_options const& with) {
  dataset_spec data;
  data.name = place.path + " on namespace " + std::to_string(drive.namespace_id);
  data.bytes = drive.offset + place.count * place.item_bytes;
  data.volume.members = {{drive.owner, drive.namespace_id}};
  on_drive_ = std::make_unique<line_cache>(*drive.on, std::vector{data}, with);
  origin_ = drive.offset;
  drive_engine_ = drive.owner->engine();
}

}  // namespace penstock::apps
