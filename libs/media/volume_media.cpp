#include "libs/media/volume_media.hpp"

#include "libs/media/names.hpp"
#include "libs/volume/drive_member.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>

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

u32 queues_beside_members(executor const& on, volumes::volume const& all, u32 wanted, std::string const& name) {
  if (wanted == 0) wanted = on.units();
  const u32 queues = all.place_of(0).drive->controller.limits().queues;
  if (queues <= all.members()) {
    throw_bad_input(
        "open", name,
        "its drive has " + std::to_string(queues) + " queues, and the members of the volume take them all: export it");
  }
  return std::min(wanted, queues - all.members());
}

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

volume_spec members_of(volumes::volume const& all, bool direct, std::function<software_controller&()> const& software) {
  volume_spec where{all.shape().layout, {}, all.shape().stripe_bytes};
  for (u32 m = 0; m < all.members(); ++m) {
    const volumes::namespace_place place = all.place_of(m);
    if (place.drive != nullptr) {
      where.members.push_back({&place.drive->controller, place.namespace_id});
      continue;
    }
    file_namespace space;
    space.path = place.path;
    space.direct = direct;
    software_controller& server = software();
    where.members.push_back({&server, server.add_namespace(space)});
  }
  return where;
}

volume_media::volume_media(executor& on, std::vector<graph::array_place const*> const& arrays, media_options const& options)
    : file_(file_of(*arrays.front())) {
  const volume_spec where = members_of(file_->from().all, options.direct, [&]() -> software_controller& {
    if (files_ == nullptr) {
      files_ = std::make_unique<software_controller>(software_options_for(on, parse_engine(options.engine), options.threads));
    }
    return *files_;
  });
  std::vector<dataset_spec> datasets;
  for (graph::array_place const* each : arrays) {
    volumes::stored_file const& file = file_of(*each)->file();
    origins_.push_back(file.file_begin + each->data_offset);
    counts_.push_back(each->count);
    datasets.push_back({.name = each->path, .bytes = file.sums_begin, .volume = where});
  }
  cache_options with = cache_options_of(options, options.cache_bytes);
  if (files_ == nullptr) with.queues = queues_beside_members(on, file_->from().all, with.queues, arrays.front()->path);
  cache_ = std::make_unique<line_cache>(on, datasets, with);
}

std::string volume_media::engine() const {
  return files_ ? files_->engine() : file_->from().all.place_of(0).drive->controller.engine();
}

}  // namespace penstock::media
