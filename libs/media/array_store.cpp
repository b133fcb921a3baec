#include "libs/media/array_store.hpp"

#include "libs/graph/file.hpp"
#include "libs/media/names.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <utility>

namespace penstock::media {
namespace {

constexpr u64 copy_bytes = 4 << 20;  // that the host moves at once
constexpr u32 queues_of_cuda = 8;    // of an array on a drive, beside those of the cache
constexpr u32 modelled_queues = 32;  // of a cache on a GPU, on each drive: all have 1024 together
constexpr u32 queue_depth = 128;

}  // namespace

array_store::array_store(executor& on, array_store_options const& options, std::vector<stored_file> arrays,
                         progress_fn const& progress)
    : on_(on), options_(options), arrays_(std::move(arrays)) {
  if (options.media == "file") {
    if (options.drives != 1) throw_bad_input("open", "files", "they lie on one drive: name a modelled drive as media");
    files_ = std::make_unique<software_controller>(software_options_for(on, options.engine, options.controller_threads));
    drives_ = {files_.get()};
    for (stored_file const& each : arrays_) {
      file_namespace space;
      space.path = each.file.path;
      space.direct = options.direct;
      space.writable = each.writable;
      spaces_.push_back({files_->add_namespace(space)});
    }
  } else {
    add_modelled(progress);
  }
  add_devices();
}

void array_store::add_modelled(progress_fn const& progress) {
  const drive_timing timing = drive_preset(options_.media);
  if (options_.drives == 0 || options_.drives > volume_members_limit) {
    throw_bad_input("model", std::to_string(options_.drives) + " drives",
                    "choose 1 to " + std::to_string(volume_members_limit));
  }
  server_ = std::make_unique<model_server>(on_, model_server_options{.units = options_.server_units});
  std::vector<model_drive*> drives;
  for (u32 d = 0; d < options_.drives; ++d) {
    drives.push_back(&server_->add_drive({.timing = timing, .faults = {}}));
    drives_.push_back(drives.back());
  }
  for (u32 k = 0; k < arrays_.size(); ++k) {
    const u64 stripes = ceil_div(std::max<u64>(1, arrays_[k].file.data_bytes()), options_.stripe_bytes);
    media_.emplace_back();
    spaces_.emplace_back();
    for (model_drive* drive : drives) {
      media_[k].emplace_back(server_->memory(), parse_place(options_.place),
                             (replicated() ? stripes : ceil_div(stripes, options_.drives)) * options_.stripe_bytes);
      spaces_[k].push_back(drive->add_namespace(media_[k].back().data(), media_[k].back().bytes()));
    }
    if (!arrays_[k].writable) load(k, progress);
  }
}

void array_store::add_devices() {
  const bool cuda = on_.kind() == executor_kind::cuda;
  const u32 queues = cuda ? queues_of_cuda : on_.units();
  u32 next = 1 + (cache_queues() != 0 ? cache_queues() : on_.units());
  std::vector<block_device_view> views;
  for (auto const& spaces : spaces_) {
    for (u32 d = 0; d < drives_.size(); ++d) {
      block_device_options device;
      device.queues = queues;
      device.queue_depth = queue_depth;
      device.first_queue_id = next;
      device.rings = cuda && drives_[d]->limits().reaches_local ? memory_kind::local : memory_kind::shared;
      devices_.push_back(std::make_unique<block_device>(on_, *drives_[d], spaces[d], device));
      views.push_back(devices_.back()->view());
    }
    next += queues;
  }
  views_ = {on_.memory(), memory_kind::local, views.size()};
  views_.write(views);
}

u32 array_store::cache_queues() const {
  if (options_.cache_queues != 0) return options_.cache_queues;
  return modelled() && on_.kind() == executor_kind::cuda ? modelled_queues : 0;
}

std::string array_store::engine() const { return modelled() ? "model server" : files_->engine(); }

double array_store::specified_rate(bool writes) const {
  if (!modelled()) return 0;
  const drive_timing timing = drive_preset(options_.media);
  return 4096 * options_.drives * (writes ? timing.write_iops_4k : timing.read_iops_4k);
}

bool array_store::one_rate() const { return specified_rate(false) != 0 && !drive_preset(options_.media).duplex; }

double array_store::capacity(u32 array) const {
  const double modelled_bytes = modelled() ? options_.drives * drive_capacity(options_.media) : 0;
  return modelled_bytes > 0 ? modelled_bytes : static_cast<double>(arrays_[array].file.file_bytes());
}

u32 array_store::units_left() const {
  const u32 taken = modelled() && on_.kind() == executor_kind::cuda ? server_->units_taken() : 0;
  return on_.units() - taken;
}

std::vector<dataset_spec> array_store::datasets() const {
  std::vector<dataset_spec> all;
  for (u32 k = 0; k < arrays_.size(); ++k) {
    dataset_spec data;
    data.name = arrays_[k].file.path;
    data.bytes = modelled() ? arrays_[k].file.data_bytes() : arrays_[k].file.file_bytes();
    data.writable = arrays_[k].writable;
    data.volume.layout = drives_.size() > 1 ? options_.layout : volume_layout::single;
    data.volume.stripe_bytes = options_.stripe_bytes;
    for (u32 d = 0; d < drives_.size(); ++d) data.volume.members.push_back({drives_[d], spaces_[k][d]});
    all.push_back(std::move(data));
  }
  return all;
}

tile_array array_store::tiles(u32 array) const {
  tile_array tiles;
  tiles.drives = views_.data() + array * drives_.size();
  tiles.drives_count = static_cast<u32>(drives_.size());
  tiles.block_shift = devices_[array * drives_.size()]->view().block_shift;
  tiles.stripe_bytes = options_.stripe_bytes;
  tiles.origin = origin(array);
  tiles.item_bytes = arrays_[array].file.type.bytes;
  return tiles;
}

void array_store::start() {
  if (modelled()) server_->start();
}

void array_store::stop() {
  if (modelled()) server_->stop();
}

template <class Move>
void array_store::each_stripe(u32 array, u64 offset, u64 bytes, Move const& move) const {
  const u64 drives = media_[array].size();
  for (u64 done = 0; done < bytes;) {
    const u64 stripe = (offset + done) / options_.stripe_bytes;
    const u64 within = (offset + done) % options_.stripe_bytes;
    const u64 part = std::min(bytes - done, options_.stripe_bytes - within);
    if (replicated()) {
      for (buffer<u8> const& drive : media_[array]) move(drive.data() + offset + done, done, part);
    } else {
      move(media_[array][stripe % drives].data() + stripe / drives * options_.stripe_bytes + within, done, part);
    }
    done += part;
  }
}

void array_store::load(u32 array, progress_fn const& progress) {
  array_file const& from = arrays_[array].file;
  const graph::file file = graph::file::open(from.path);
  std::vector<std::byte> part;
  for (u64 done = 0; done < from.data_bytes(); done += part.size()) {
    if (progress) progress("filling the drives", done, from.data_bytes());
    part.resize(std::min(copy_bytes, from.data_bytes() - done));
    file.read(from.origin + done, part);
    each_stripe(array, done, part.size(),
                [&](u8* to, u64 at, u64 bytes) { server_->memory().write(to, part.data() + at, bytes); });
  }
}

void array_store::read(u32 array, u64 offset, std::span<std::byte> to) const {
  if (!modelled()) return graph::file::open(arrays_[array].file.path).read(arrays_[array].file.origin + offset, to);
  each_stripe(array, offset, to.size(),
              [&](u8 const* from, u64 at, u64 bytes) { server_->memory().read(to.data() + at, from, bytes); });
}

void array_store::clear(u32 array) {
  array_file const& file = arrays_[array].file;
  const graph::file to = modelled() ? graph::file() : graph::file::open_to_write(file.path);
  const std::vector<std::byte> zeros(std::min(copy_bytes, file.data_bytes()));
  for (u64 done = 0; done < file.data_bytes(); done += copy_bytes) {
    const auto part = std::span(zeros).first(std::min(copy_bytes, file.data_bytes() - done));
    if (!modelled()) {
      to.write(file.origin + done, part);
      continue;
    }
    each_stripe(array, done, part.size(),
                [&](u8* place, u64 at, u64 bytes) { server_->memory().write(place, part.data() + at, bytes); });
  }
}

void array_store::save(u32 array) const {
  if (!modelled()) return;
  array_file const& file = arrays_[array].file;
  const graph::file to = graph::file::open_to_write(file.path);
  std::vector<std::byte> part;
  for (u64 done = 0; done < file.data_bytes(); done += part.size()) {
    part.resize(std::min(copy_bytes, file.data_bytes() - done));
    read(array, done, part);
    to.write(file.origin + done, part);
  }
}

}  // namespace penstock::media
