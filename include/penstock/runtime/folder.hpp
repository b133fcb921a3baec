// A folder of files for kernels (file/folder_view.hpp): owns its cache, controllers and queues.
#pragma once

#include "penstock/controller/software_controller.hpp"
#include "penstock/file/folder_view.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock {

struct folder_options {
  cache_options cache;  ///< of all files together; its directory is set-associative
  io_engine engine = io_engine::automatic;
  u32 controller_threads = 0;  ///< CUDA: threads that move bytes, 0 for all cores but two; CPU: in place
  u32 call_threads = 0;        ///< CUDA: threads that answer calls, 0 for half of the cores, at most 8; CPU: in place
  bool writable = false;
  /// Open at once, 72 to 80 bytes of the executor's memory and 20 of the host's each; the process's own limit (ulimit -n) may
  /// be lower. In a writable folder each may grow to its share of the line space. 0: 65536, in a writable folder of these as
  /// many as leave each a 4096th of it.
  u32 max_files = 0;
  u32 max_calls = 256;  ///< under way at once; others wait for their turn
};

/// Not copyable; outlives its views, and no kernel runs when it goes: files that are still open are closed then.
class folder {
 public:
  /// Throws penstock::error with path, reason and remedy: no such folder, options that cannot be.
  folder(executor& on, std::string const& root, folder_options const& options = {});
  ~folder();

  folder_view const& view() const { return view_; }

  /// Writes all that was stored back, and returns when it is on the device for good: the files have the sizes that kernels gave
  /// them. Throws penstock::error (world) that says what could not be written. REQUIRES: no kernel runs.
  void flush();

  /// See file_folder.
  int open_to_read(std::string const& path) const { return files_.open_to_read(path); }
  u32 open_files() const { return files_.open_files(); }
  /// Calls that the host has answered so far: opens of files that were open here, and closes but the last, are not among them.
  u64 host_calls() const { return files_.calls(); }
  /// Versions of files that have a range of the line space.
  u64 versions() const { return files_.versions(); }
  line_cache& cache() { return *cache_; }
  line_cache const& cache() const { return *cache_; }

 private:
  void make_calls(folder_options const& options);
  void make_table(u32 max_files);
  std::vector<u64> read_sizes() const;

  executor& on_;
  std::string root_;
  file_folder files_;
  software_controller data_;
  call_controller calls_;
  std::unique_ptr<line_cache> cache_;
  buffer<call_slot> slots_;
  buffer<file_call> records_;
  buffer<open_file> open_files_;
  buffer<u32> hints_;
  buffer<u64> renames_;
  std::vector<std::unique_ptr<queue_pair<result_sink>>> queues_;
  buffer<queue_pair_view<result_sink>> table_;
  folder_view view_;
};

}  // namespace penstock
