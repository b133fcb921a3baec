// What the configurations of `penstock bench cliffs` go over: known values, in a file and in memory, and a cache over them.
#pragma once

#include "libs/bench/cliff_config.hpp"
#include "libs/bench/pattern.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::bench {

/// The data of all configurations: element i is value_at(i), in a file and in memory.
class cliff_data {
 public:
  cliff_data(executor& on, std::string const& wanted_folder, u64 bytes)
      : values(on.memory(), memory_kind::shared, bytes / sizeof(u64)) {
    for (u64 i = 0; i < values.size(); ++i) values.data()[i] = value_at(i);
    char const* const usual = std::getenv("TMPDIR");
    const std::string folder = !wanted_folder.empty() ? wanted_folder : usual != nullptr ? usual : "/tmp";
    path_ = folder + "/penstock-cliffs-" + std::to_string(now_ns());
    write_file();
  }
  cliff_data(cliff_data const&) = delete;
  ~cliff_data() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::string const& path() const { return path_; }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(std::span(values.data(), values.size())); }

  /// Whether each element is larger by what was added to it; then all are as they were.
  bool take_back(cliff_source source, std::vector<u32> const& added) {
    std::vector<u32> times(values.size(), 0);
    for (const u32 i : added) ++times[i];
    std::vector<u64> found(values.data(), values.data() + values.size());
    if (source == cliff_source::file) {
      std::ifstream file(path_, std::ios::binary);
      file.read(reinterpret_cast<char*>(found.data()), static_cast<std::streamsize>(found.size() * sizeof(u64)));
    }
    bool right = true;
    for (u64 i = 0; i < found.size(); ++i) {
      right = right && found[i] == value_at(i) + times[i];
      values.data()[i] = value_at(i);
    }
    if (source == cliff_source::file) write_file();
    return right;
  }

  /// Seconds a line that `threads` threads write to the file anew, lines far apart: what its file system takes.
  double write_seconds(u64 line_bytes, u64 lines, u64 threads) const {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) throw_os_error("write", path_, errno, "name another folder");
    const u64 each = std::max<u64>(1, lines / threads), places = values.bytes() / line_bytes;
    std::atomic<bool> whole{true};
    const u64 begun = now_ns();
    {
      std::vector<std::jthread> writers;
      writers.reserve(threads);
      for (u64 t = 0; t < threads; ++t) {
        writers.emplace_back([&, t] {
          for (u64 k = t * each; k < (t + 1) * each; ++k) {
            const u64 at = k * 2654435761u % places * line_bytes;
            auto const* const from = reinterpret_cast<std::byte const*>(values.data()) + at;
            if (::pwrite(file, from, line_bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(line_bytes)) whole = false;
          }
        });
      }
    }
    const double seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    ::close(file);
    if (!whole) throw error(error_kind::world, "write " + path_ + ": no room for the data: name another folder");
    return seconds / static_cast<double>(each * threads);
  }

  buffer<u64> values;

 private:
  void write_file() const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<char const*>(values.data()), static_cast<std::streamsize>(values.bytes()));
    file.close();
    if (file) return;
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    throw error(error_kind::world, "write " + path_ + ": no room for the data: name another folder");
  }

  std::string path_;
};

/// A cache over the data from one of the sources, with the options that users get where they ask for no others.
class cliff_cache {
 public:
  cliff_cache(executor& on, cliff_data const& data, cliff_config const& c) {
    cache_options cache;
    cache.bytes = c.cache_bytes;
    cache.line_bytes = c.line_bytes;
    cache.directory = c.directory;
    const bool writable = c.access == cliff_access::add;
    if (c.source == cliff_source::file) {
      stored_array_options options;
      options.cache = cache;
      options.raw = raw_layout{.item_bytes = sizeof(u64), .offset = 0, .elements = data.values.size()};
      options.writable = writable;
      file_ = std::make_unique<stored_array>(on, data.path(), options);
      return;
    }
    dataset_spec dataset{.name = "known values", .bytes = data.values.bytes(), .volume = {}, .writable = writable};
    if (c.source == cliff_source::memory) {
      controller_ = std::make_unique<software_controller>(software_options_for(on, io_engine::automatic, 0));
      dataset.volume = {volume_layout::single, {{controller_.get(), controller_->add_namespace(data.bytes())}}};
    } else {
      dataset.memory = data.values.data();
    }
    cache_ = std::make_unique<line_cache>(on, std::vector<dataset_spec>{dataset}, cache);
  }

  line_cache& get() const { return file_ ? file_->cache() : *cache_; }

 private:
  std::unique_ptr<stored_array> file_;
  std::unique_ptr<software_controller> controller_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::bench
