#include "libs/media/volume_media.hpp"

#include "libs/media/names.hpp"

#include "penstock/host/error.hpp"

namespace penstock::media {
namespace {

std::shared_ptr<volumes::volume_file const> file_of(graph::array_place const& place) {
  return std::dynamic_pointer_cast<volumes::volume_file const>(place.stored);
}

/// The drive that all members are on, or nothing where they are files.
std::shared_ptr<volumes::running_drive> drive_of(std::vector<volumes::volume const*> const& from, std::string const& name) {
  std::vector<std::shared_ptr<volumes::running_drive>> drives;
  for (volumes::volume const* all : from) {
    for (u32 m = 0; m < all->members(); ++m) drives.push_back(all->place_of(m).drive);
  }
  for (auto const& each : drives) {
    if (each == drives.front()) continue;
    throw_bad_input(
        "open", name,
        "its members are on several drives, whose memories are apart: it is read in place on one drive, or on files; "
        "export it");
  }
  return drives.empty() ? nullptr : drives.front();
}

}  // namespace

std::unique_ptr<executor> open_executor_for(std::vector<volumes::volume const*> const& from, std::string const& name,
                                            media_options const& options, bool has_kernels) {
  const auto drive = drive_of(from, name);
  if (drive == nullptr) return open_executor(options.executor, cpu_threads(options), has_kernels);
  if (options.executor == "cuda") {
    throw_bad_input("open", name, "its drive does not reach a GPU's memory: choose executor cpu, or export it");
  }
  return open_cpu_executor(drive->function->memory(), cpu_threads(options));
}

std::unique_ptr<executor> open_executor_for(graph::graph_folder const& graph, media_options const& options, bool has_kernels) {
  std::vector<volumes::volume const*> from;
  if (const auto file = file_of(graph.edges_place()); file != nullptr) from.push_back(&file->from().all);
  return open_executor_for(from, graph.path(), options, has_kernels);
}

cache_controllers::cache_controllers(executor& on, media_options const& options)
    : on_(on), serving_(software_options_for(on, parse_engine(options.engine), options.threads)), direct_(options.direct),
      with_(cache_options_of(options, options.cache_bytes)) {}

volume_spec::member cache_controllers::file(std::string const& path) {
  if (files_ == nullptr) {
    files_ = std::make_unique<software_controller>(serving_);
  }
  file_namespace space;
  space.path = path;
  space.direct = direct_;
  return {files_.get(), files_->add_namespace(space)};
}

volume_spec cache_controllers::volume(volumes::volume const& all, std::string const& name) {
  volume_spec where{all.shape().layout, {}, all.shape().stripe_bytes};
  for (u32 m = 0; m < all.members(); ++m) {
    const volumes::namespace_place place = all.place_of(m);
    if (place.drive == nullptr) {
      where.members.push_back(file(place.path));
      continue;
    }
    if (drive_ == nullptr) {
      const u32 wanted = with_.queues;
      drive_ = std::make_unique<volumes::drive_share>(place.drive, wanted == 0 ? on_.units() : wanted, wanted == 0, name);
    }
    where.members.push_back({drive_.get(), place.namespace_id});
  }
  return where;
}

std::unique_ptr<line_cache> cache_controllers::cache(std::vector<dataset_spec> const& datasets) {
  cache_options with = with_;
  if (drive_ == nullptr) return std::make_unique<line_cache>(on_, datasets, with);
  if (with.queues != 0) with.queues = drive_->limits().queues;
  const std::lock_guard turn(drive_->opening());
  return std::make_unique<line_cache>(on_, datasets, with);
}

volume_media::volume_media(executor& on, std::vector<graph::array_place const*> const& arrays, media_options const& options)
    : file_(file_of(*arrays.front())), controllers_(on, options) {
  const volume_spec where = controllers_.volume(file_->from().all, arrays.front()->path);
  std::vector<dataset_spec> datasets;
  for (graph::array_place const* each : arrays) {
    volumes::stored_file const& file = file_of(*each)->file();
    origins_.push_back(file.file_begin + each->data_offset);
    counts_.push_back(each->count);
    datasets.push_back({.name = each->path, .bytes = file.sums_begin, .volume = where});
  }
  cache_ = controllers_.cache(datasets);
}

}  // namespace penstock::media
