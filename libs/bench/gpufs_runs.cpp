#include "libs/bench/gpufs_runs.hpp"

#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <stdlib.h>

namespace penstock::bench {
namespace {

constexpr u64 gpufs_cuda_rooms = 8192;  // more than groups of a launch

// Items that a CPU's thread takes at once (run_lone_threads).
u64 gpufs_items_at_once(executor const& on, u64 items) { return std::clamp<u64>(items / (16 * on.units()), 1, 64); }

template <class Work>
double gpufs_seconds(Work const& work) {
  const u64 begun = now_ns();
  work();
  return static_cast<double>(now_ns() - begun) * 1e-9;
}

}  // namespace

std::string name_of(gpufs_lookup lookup) { return lookup == gpufs_lookup::hash_table ? "hash_table" : "radix_tree"; }
std::string name_of(gpufs_allocation kind) { return kind == gpufs_allocation::ring ? "ring" : "locked_list"; }
std::string name_of(gpufs_level level) { return level == gpufs_level::block ? "block" : "warp"; }
std::string name_of(gpufs_transfers kind) {
  return kind == gpufs_transfers::none ? "none" : kind == gpufs_transfers::single ? "single" : "batched";
}
std::string name_of(gpufs_draw draw) {
  return draw == gpufs_draw::once     ? "once"
         : draw == gpufs_draw::skewed ? "skewed"
         : draw == gpufs_draw::zipf   ? "zipf"
         : draw == gpufs_draw::linear ? "linear"
                                      : "random";
}

gpufs_draw gpufs_draw_of(std::string const& name, gpufs_draw otherwise) {
  if (name.empty()) return otherwise;
  for (const gpufs_draw each : {gpufs_draw::random, gpufs_draw::skewed, gpufs_draw::zipf, gpufs_draw::linear}) {
    if (name == name_of(each)) return each;
  }
  throw_bad_input("measure", "gpufs", "order " + name + ": choose random, skewed, zipf or linear");
}

gpufs_made_files::gpufs_made_files(std::string const& parent, u64 bytes, u64 hole_bytes) {
  const std::filesystem::path in = parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
  std::string pattern = (in / "penstock_gpufs_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw_os_error("make a folder", pattern, errno, "name another with --folder");
  path_ = pattern;
  std::ofstream large(path_ + "/large", std::ios::binary);
  std::vector<u64> words(u64{1} << 16);
  for (u64 first = 0; first < bytes / sizeof(u64); first += words.size()) {
    for (u64 w = 0; w < words.size(); ++w) words[w] = value_at(first + w);
    large.write(reinterpret_cast<char const*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof(u64)));
  }
  if (!large.flush()) throw_os_error("write", path_ + "/large", errno, "make room, or name another folder with --folder");
  std::filesystem::create_directory(hole());
  std::ofstream(hole() + "/large").flush();
  std::filesystem::resize_file(hole() + "/large", hole_bytes);
}

gpufs_made_files::~gpufs_made_files() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

gpufs_folder::gpufs_folder(executor& on, std::string const& path, u64 cache_bytes, u64 line_bytes)
    : files(on, path, [&] {
        folder_options options;
        options.cache.bytes = cache_bytes;
        options.cache.line_bytes = line_bytes;
        return options;
      }()) {
  buffer<file_descriptor> opened(on.memory(), memory_kind::local, 1);
  buffer<u64> wrong(on.memory(), memory_kind::local, 1);
  const open_all body{files.view(), 0, opened.data(), wrong.data()};
  bool done = false;
  if constexpr (built_with_kernels) {
    if (on.kind() == executor_kind::cuda) run_files_cuda(on, 1, body), done = true;
  }
  if (!done) launch<32>(on, 1, body);
  u64 failed = 0;
  wrong.read({&failed, 1});
  if (failed != 0) throw error(error_kind::world, "measure gpufs: " + path + "/large cannot be opened");
  opened.read({&large, 1});
  line_cache_view const& lines = files.cache().view();
  touch_gpufs_memory(on, reinterpret_cast<void*>(lines.frames_base), lines.frames << lines.line_shift);
}

gpufs_runs::gpufs_runs(executor& on, gpufs_bench_options const& options, u64 max_reads)
    : on_(on), blocks_(options.groups != 0 ? options.groups : 2 * on.units()),
      rooms_(on.memory(), memory_kind::local,
             read_words * (on.kind() == executor_kind::cuda ? gpufs_cuda_rooms : 32 * on.units() + ceil_div(max_reads, 64))),
      wrong_(on.memory(), memory_kind::local, 1) {}

u64 gpufs_runs::items_per_group(u64 items) const { return cuda() ? 1 : gpufs_items_at_once(on_, items); }
group_rooms gpufs_runs::rooms_of(u64 items) const { return {rooms_.data(), items_per_group(items)}; }

void gpufs_runs::check(std::string const& what) const {
  u64 wrong = 0;
  wrong_.read({&wrong, 1});
  if (wrong != 0) throw error(error_kind::world, "measure gpufs: " + what + ": " + std::to_string(wrong) + " calls went wrong");
}

void gpufs_runs::check(gpufs_cache const& cache) {
  const u64 inserted = cache.counts().insertions, moved = cache.traffic().pages;
  if (cache.pinned_frames() != 0) throw error(error_kind::world, "measure gpufs: pages are pinned after the run");
  if (cache.options().transfers == gpufs_transfers::none || inserted == moved) return;
  throw error(error_kind::world, "measure gpufs: " + std::to_string(inserted) + " pages were inserted, but " +
                                     std::to_string(moved) + " were moved");
}

template <class Body>
double gpufs_runs::time(u64 items, Body const& body, [[maybe_unused]] gpufs_level level) const {
  if constexpr (built_with_kernels) {
    if (cuda()) {
      return gpufs_seconds([&] {
        if (level == gpufs_level::block) return run_gpufs_blocks_cuda(on_, items, body, blocks_);
        run_gpufs_cuda(on_, items, body, groups(level));
      });
    }
  }
  return gpufs_seconds([&] { launch<32>(on_, items, body); });
}

template <class Body>
double gpufs_runs::time_folder(u64 items, Body const& body) const {
  if constexpr (built_with_kernels) {
    if (cuda()) return gpufs_seconds([&] { run_gpufs_cuda(on_, items, body, 0); });
  }
  return gpufs_seconds([&] { launch<32>(on_, items, body); });
}

double gpufs_runs::read(gpufs_cache const& cache, gpufs_level level, gpufs_workload const& work) const {
  const gpufs_read_pieces body{cache.view(), work.order, work.shape, rooms_of(work.reads), wrong_.data()};
  const double seconds = time(work.reads, body, level);
  check("reads of GPUfs");
  check(cache);
  return seconds;
}

double gpufs_runs::touch(gpufs_cache const& cache, gpufs_level level, gpufs_workload const& work) const {
  const gpufs_touch_pages body{cache.view(), work.order, items_per_group(work.reads), wrong_.data()};
  const double seconds = time(work.reads, body, level);
  check("pages of GPUfs");
  check(cache);
  return seconds;
}

double gpufs_runs::read(gpufs_folder& folder, gpufs_workload const& work) const {
  const gpufs_read_folder body{folder.files.view(), folder.large, work.order, work.shape, rooms_of(work.reads), wrong_.data()};
  const double seconds = time_folder(work.reads, body);
  check("reads of the folder");
  return seconds;
}

double gpufs_runs::touch(gpufs_folder& folder, gpufs_workload const& work, u64 line_bytes) const {
  const gpufs_touch_folder body{folder.files.view(), folder.large, work.order, line_bytes, wrong_.data()};
  const double seconds = time_folder(work.reads, body);
  check("lines of the folder");
  return seconds;
}

}  // namespace penstock::bench
