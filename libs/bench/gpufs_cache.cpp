#include "libs/bench/gpufs_cache.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>

namespace penstock::bench {
namespace {

constexpr u64 capacity_per_frame = 16;  // words of the hash table (section 4.1)
constexpr u64 min_buckets = 1024;       // of small caches, whose few buckets would fill by chance

[[noreturn]] void refuse_gpufs(std::string const& problem) { throw_bad_input("open", "a GPUfs cache", problem); }

void check_gpufs_options(executor const& on, gpufs_options const& options, u64 files) {
  if (!is_power_of_two(options.page_bytes) || options.page_bytes < 512 || options.page_bytes > u64{1} << 20) {
    refuse_gpufs("pages of " + std::to_string(options.page_bytes) + " bytes: choose a power of two from 512 to 1048576");
  }
  if (options.allocators == 0 || options.allocators > 64) {
    refuse_gpufs(std::to_string(options.allocators) + " allocators: choose 1 to 64");
  }
  if (options.cache_bytes / options.page_bytes < options.allocators) {
    refuse_gpufs(std::to_string(options.cache_bytes) + " bytes: each allocator needs a page at least");
  }
  if (options.cache_bytes / options.page_bytes > gpufs_directory::max_frames) {
    refuse_gpufs(std::to_string(options.cache_bytes) + " bytes: choose larger pages, or fewer bytes");
  }
  if (options.workers > 8) refuse_gpufs(std::to_string(options.workers) + " workers: choose 1 to 8");
  if (options.workers == 0 && on.kind() == executor_kind::cuda && options.transfers != gpufs_transfers::none) {
    refuse_gpufs("0 workers: a GPU's threads cannot read in place; choose 1 to 8");
  }
  if (options.workers == 0 && options.transfers == gpufs_transfers::batched) {
    refuse_gpufs("batched transfers without workers: choose 1 to 8");
  }
  if (options.slots == 0 || options.slots > 65536 || options.slots < options.workers) {
    refuse_gpufs(std::to_string(options.slots) + " slots: choose 1 to 65536, and as many as workers");
  }
  if (files == 0 || files > gpufs_directory::max_files) {
    refuse_gpufs(std::to_string(files) + " files: choose 1 to " + std::to_string(gpufs_directory::max_files));
  }
}

}  // namespace

void touch_gpufs_memory(executor const& on, void* first, u64 bytes) {
  constexpr u64 system_page = 4096;
  if (on.kind() != executor_kind::cpu) return;
  for (u64 at = 0; at < bytes; at += system_page) static_cast<char*>(first)[at] = 0;
}

gpufs_cache::gpufs_cache(executor& on, std::vector<std::string> const& paths, gpufs_options const& options)
    : options_(options) {
  check_gpufs_options(on, options, paths.size());
  std::vector<gpufs_open_file> files;
  files.reserve(paths.size());
  for (std::string const& path : paths) files.emplace_back(path);
  memory_resource& memory = on.memory();
  const u64 frames = options.cache_bytes / options.page_bytes;
  const bool hashed = options.lookup == gpufs_lookup::hash_table;
  const u64 buckets =
      hashed ? std::bit_ceil(std::max(min_buckets, frames * capacity_per_frame / gpufs_directory::bucket_words)) : 0;
  buckets_ = {memory, memory_kind::local, buckets * gpufs_directory::bucket_words};
  locks_ = {memory, memory_kind::local, buckets};
  files_ = {memory, memory_kind::local, files.size()};
  frames_ = {memory, memory_kind::local, frames};
  entries_ = {memory, memory_kind::local, frames};
  rings_ = {memory, memory_kind::local, options.allocators};
  bytes_ = {memory, memory_kind::local, frames * options.page_bytes};
  slots_ = {memory, memory_kind::local, options.slots};
  requests_ = {memory, memory_kind::shared, options.slots};
  counts_ = {memory, memory_kind::local, 1};
  view_.bytes = bytes_.data();
  view_.page_shift = ceil_log2(options.page_bytes);
  view_.transfers = options.transfers;
  view_.slots = slots_.data();
  view_.requests = requests_.data();
  view_.slots_count = options.slots;
  view_.counts = counts_.data();
  view_.timeout_ns = options.timeout_ns;
  view_.directory.kind = options.lookup;
  view_.directory.buckets = buckets_.data();
  view_.directory.locks = locks_.data();
  view_.directory.bucket_mask = buckets - 1;

  // Each node of each tree, for the case that all pages of all files were there once; nodes stay.
  std::vector<gpufs_file> trees;
  u64 nodes = 0;
  for (gpufs_open_file const& file : files) {
    gpufs_file tree;
    tree.bytes = file.bytes();
    tree.first_node = nodes;
    u64 words = std::max<u64>(1, ceil_div(file.bytes(), options.page_bytes));
    if (words > gpufs_directory::max_pages)
      refuse_gpufs("a file of " + std::to_string(file.bytes()) + " bytes: choose larger pages");
    for (tree.levels = 0; words > 1 || tree.levels == 0; ++tree.levels) {
      words = ceil_div(words, gpufs_directory::node_words);
      nodes += hashed ? 0 : words;
    }
    trees.push_back(tree);
  }
  nodes_ = {memory, memory_kind::local, nodes * gpufs_directory::node_words};
  view_.directory.nodes = nodes_.data();
  view_.directory.files = files_.data();
  files_.write(trees);
  touch_gpufs_memory(on, nodes_.data(), nodes_.bytes());
  touch_gpufs_memory(on, buckets_.data(), buckets_.bytes());
  touch_gpufs_memory(on, bytes_.data(), bytes_.bytes());
  make_rings();
  server_ = std::make_unique<gpufs_server>(on, options, std::move(files), view_);
}

void gpufs_cache::make_rings() {
  const u64 frames = frames_.size(), count = rings_.size();
  std::vector<u32> entries(frames);
  std::vector<gpufs_ring> rings(count);
  for (u64 k = 0; k < frames; ++k) entries[k] = static_cast<u32>(k);
  for (u64 r = 0; r < count; ++r) {
    const u64 first = frames * r / count, last = frames * (r + 1) / count;
    rings[r].limit = rings[r].count = last - first;
    rings[r].entries = entries_.data() + first;
  }
  entries_.write(entries);
  rings_.write(rings);
  frames_.write(std::vector<gpufs_frame>(frames));
  view_.frames = {options_.allocation, static_cast<u32>(count), rings_.data(), frames_.data(), &counts_.data()->evictions};
}

gpufs_counts gpufs_cache::counts() const {
  gpufs_counts found;
  counts_.read({&found, 1});
  return found;
}

u64 gpufs_cache::pinned_frames() const {
  std::vector<gpufs_frame> all(frames_.size());
  frames_.read(all);
  return static_cast<u64>(
      std::count_if(all.begin(), all.end(), [](gpufs_frame const& f) { return (f.pins & ~gpufs_frame::claimed) != 0; }));
}

}  // namespace penstock::bench
