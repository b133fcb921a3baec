// GPUfs's buffer cache over files, on either executor: the owner of what `gpufs_view` points at.
#pragma once

#include "libs/bench/gpufs_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock::bench {

/// A CPU's system hands memory out as it is first stored to. That is no part of what is compared, so it happens before.
void touch_gpufs_memory(executor const& on, void* first, u64 bytes);

/// Not copyable; outlives its views, and no kernel runs when it goes.
class gpufs_cache {
 public:
  /// Files have the numbers of their paths, from 0. Throws penstock::error: bad_input for options that cannot be, world for
  /// files that cannot be read.
  gpufs_cache(executor& on, std::vector<std::string> const& paths, gpufs_options const& options);

  gpufs_view const& view() const { return view_; }
  gpufs_options const& options() const { return options_; }
  u64 frames() const { return frames_.size(); }
  /// REQUIRES: no kernel runs, as for the next.
  gpufs_counts counts() const;
  gpufs_traffic traffic() const { return server_->traffic(); }
  /// Frames that are pinned, or that a group which gave up has left to the host.
  u64 pinned_frames() const;

 private:
  void make_rings();

  gpufs_options options_;
  buffer<gpufs_file> files_;
  buffer<u64> nodes_, buckets_;
  buffer<u32> locks_, entries_;
  buffer<gpufs_frame> frames_;
  buffer<gpufs_ring> rings_;
  buffer<std::byte> bytes_;
  buffer<gpufs_slot> slots_;
  buffer<gpufs_request> requests_;
  buffer<gpufs_counts> counts_;
  gpufs_view view_;
  std::unique_ptr<gpufs_server> server_;
};

}  // namespace penstock::bench
