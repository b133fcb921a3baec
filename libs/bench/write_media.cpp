#include "libs/bench/write_media.hpp"

#include "libs/graph/file.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/media/modelled.hpp"
#include "libs/media/names.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::bench {
namespace {

constexpr u64 piece_words = 1 << 20;

void stamp(std::span<u64> words, u64 first) {
  for (u64 k = 0; k < words.size(); ++k) words[k] = value_at(first + k);
}

}  // namespace

write_media::write_media(executor& on, write_options const& options) : on_(on), half_(options.bytes) {
  const u32 line = static_cast<u32>(options.line_bytes);
  if (options.controller == "model") {
    media::check_memory(on, media::parse_place(options.media), 2 * half_);
    server_ = std::make_unique<model_server>(on, model_server_options{.units = options.server_sms});
    model_words_ = {server_->memory(), media::parse_place(options.media), half_ / 4};
    model_drive& drive = server_->add_drive({.timing = drive_preset(options.preset), .faults = {}});
    owner_ = &drive;
    fill();
    namespace_ = drive.add_namespace(model_words_.data(), model_words_.bytes(), line);
    return;
  }
  software_ = std::make_unique<software_controller>(software_options_for(on, io_engine::automatic, options.controller_threads));
  owner_ = software_.get();
  if (options.file.empty()) {
    media::check_memory(on, memory_kind::shared, 2 * half_);
    words_.resize(half_ / 4);
    fill();
    namespace_ = software_->add_namespace(std::as_writable_bytes(std::span(words_)), line);
    return;
  }
  make_file(options.file, options.progress);
  namespace_ = software_->add_namespace(
      file_namespace{.path = file_.path, .direct = options.direct, .writable = true, .block_bytes = line});
}

void write_media::make_file(std::string const& path, progress_fn const& progress) {
  graph::file made = graph::file::create(path);
  file_.path = path;
  std::vector<u64> part(std::min(piece_words, half_ / 4));
  for (u64 first = 0; first < half_ / 4; first += part.size()) {
    if (progress) progress("making the file", first, half_ / 4);
    stamp(part, first);
    made.write(first * sizeof(u64), std::as_bytes(std::span(part)));
  }
  made.sync_and_close();
}

void write_media::fill() {
  const u64 all = half_ / 4;
  graph::progress_meter quiet;
  if (server_ == nullptr) {
    graph::parallel_for(ceil_div(all, piece_words), graph::worker_count(0), quiet, [&](u64 k) {
      const u64 first = k * piece_words;
      stamp(std::span(words_).subspan(first, std::min(piece_words, all - first)), first);
    });
    return;
  }
  std::vector<u64> part(std::min(piece_words, all));
  for (u64 first = 0; first < all; first += part.size()) {
    stamp(part, first);
    server_->memory().write(model_words_.data() + first, part.data(), part.size() * sizeof(u64));
  }
}

bool write_media::polled() const { return on_.kind() == executor_kind::cpu && (server_ == nullptr || server_->units() == 0); }

u32 write_media::units(u32 asked) const {
  if (server_ != nullptr) return media::client_units(on_, *server_, asked);
  return on_.kind() == executor_kind::cpu || asked != 0 ? asked : on_.units();
}

void write_media::start() {
  if (server_ != nullptr) server_->start();
}

void write_media::stop() {
  if (server_ != nullptr) server_->stop();
}

void write_media::read(u64 offset, std::span<u64> to) const {
  const u64 at = half_ + offset, first = at / sizeof(u64);
  if (server_ != nullptr) {
    server_->memory().read(to.data(), &model_words_.data()[first], to.size_bytes());
  } else if (!file_.path.empty()) {
    graph::file::open(file_.path).read(at, std::as_writable_bytes(to));
  } else {
    std::memcpy(to.data(), &words_[first], to.size_bytes());
  }
}

}  // namespace penstock::bench
