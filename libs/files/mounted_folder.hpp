// A folder for a host that calls as kernels do: each call is a launch of one group, on either executor.
#pragma once

#include "libs/files/folder_calls.hpp"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace penstock::files {

struct mount_options {
  std::string executor = "auto";
  bool writable = false;
  u64 cache_bytes = 0;  ///< 0: 64 MiB, on a GPU 1 GiB
  u64 line_bytes = 4096;
  u32 threads = 0;
  u32 max_files = 0;  ///< see folder_options
};

struct mount_facts {
  std::string executor, device;
  u64 cache_bytes = 0, line_bytes = 0;
  u32 open_files = 0;
  u64 versions = 0, host_calls = 0;
  cache_stats cache;
};

/// Thread-safe; calls take turns. Errors are errnos, as those of folder_view.
class mounted_folder {
 public:
  /// Throws penstock::error as `folder` does.
  mounted_folder(std::string const& root, mount_options const& options);

  /// For kernels of the caller's own, by value. Valid as long as this.
  folder_view const& view() const { return folder_.view(); }
  /// The same in local memory, where penstock::files of a kernel finds it.
  folder_view const* local_view() const { return view_.data(); }
  executor const& on() const { return *on_; }
  /// This process was forked from the one that made it: nothing of it works here.
  bool is_inherited() const { return process_ != ::getpid(); }

  /// A call without bytes to move.
  kernels::folder_answer call(kernels::folder_request asked, std::string const& path = "", std::string const& other = "");
  file_result pread(file_descriptor const& file, std::span<char> to, u64 offset);
  file_result pwrite(file_descriptor const& file, std::span<char const> from, u64 offset);
  /// Names and st_mode's type bits; an errno in `error`.
  std::vector<std::pair<std::string, u32>> list(std::string const& path, u32& error);
  /// Brings files into the cache.
  std::vector<staged_file> stage(std::vector<std::string> const& paths);
  /// See folder::flush.
  void flush();
  mount_facts facts() const;

 private:
  kernels::folder_answer call_locked(kernels::folder_request asked, std::string const& path, std::string const& other);

  pid_t process_ = ::getpid();
  std::unique_ptr<executor> on_;
  folder folder_;
  u64 cache_bytes_, line_bytes_;
  mutable std::mutex mutex_;
  buffer<char> paths_, data_;
  buffer<kernels::folder_answer> answer_;
  buffer<folder_view> view_;
};

}  // namespace penstock::files
