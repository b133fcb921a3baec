// One run of GPUfs or of Penstock's folder over the same file, timed and verified.
#pragma once

#include "libs/bench/gpufs.hpp"
#include "libs/bench/gpufs_cache.hpp"
#include "libs/bench/gpufs_kernels.hpp"

#include <memory>
#include <string>

namespace penstock::bench {

// Values of options as words.
std::string name_of(gpufs_lookup lookup);
std::string name_of(gpufs_allocation kind);
std::string name_of(gpufs_transfers kind);
std::string name_of(gpufs_level level);
std::string name_of(gpufs_draw draw);
/// Of an empty word `otherwise`. Throws penstock::error (bad_input) for another word.
gpufs_draw gpufs_draw_of(std::string const& name, gpufs_draw otherwise);

/// Files for the runs, which are removed again: `large` with known words, `hole/large` of as many bytes without any.
class gpufs_made_files {
 public:
  gpufs_made_files(std::string const& parent, u64 bytes, u64 hole_bytes);
  gpufs_made_files(gpufs_made_files const&) = delete;
  gpufs_made_files& operator=(gpufs_made_files const&) = delete;
  ~gpufs_made_files();

  std::string const& path() const { return path_; }
  std::string hole() const { return path_ + "/hole"; }

 private:
  std::string path_;
};

struct gpufs_workload {
  gpufs_order order;
  u64 reads;
  gpufs_read_shape shape{read_bytes, read_bytes};

  double bytes() const { return static_cast<double>(reads) * shape.bytes; }
};

struct gpufs_folder {
  gpufs_folder(executor& on, std::string const& path, u64 cache_bytes, u64 line_bytes);

  folder files;
  file_descriptor large;
};

/// Where runs happen: the executor, memory for what groups read, a count of what went wrong.
class gpufs_runs {
 public:
  gpufs_runs(executor& on, gpufs_bench_options const& options, u64 max_reads);

  executor& on() const { return on_; }
  bool cuda() const { return on_.kind() == executor_kind::cuda; }
  u64 blocks() const { return blocks_; }
  u64 groups(gpufs_level level) const { return level == gpufs_level::block ? blocks_ : blocks_ * warps_per_block; }
  static constexpr u64 warps_per_block = 8;

  // Seconds. Each throws penstock::error (world) where a call failed or bytes were wrong.
  double read(gpufs_cache const& cache, gpufs_level level, gpufs_workload const& work) const;
  double touch(gpufs_cache const& cache, gpufs_level level, gpufs_workload const& work) const;
  double read(gpufs_folder& folder, gpufs_workload const& work) const;
  double touch(gpufs_folder& folder, gpufs_workload const& work, u64 line_bytes) const;

 private:
  template <class Body>
  double time(u64 items, Body const& body, gpufs_level level) const;
  template <class Body>
  double time_folder(u64 items, Body const& body) const;
  void check(std::string const& what) const;
  static void check(gpufs_cache const& cache);
  /// Those that follow each other at the least: a group's number is that of its first item through it.
  u64 items_per_group(u64 items) const;
  group_rooms rooms_of(u64 items) const;

  executor& on_;
  u64 blocks_;
  buffer<u64> rooms_, wrong_;
};

}  // namespace penstock::bench
