// Where arrays lie, and the cache and the controller they are read through.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/host/progress.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <optional>
#include <string>

namespace penstock::media {

/// An array that lies on a drive as it does in its file, which is then read for verification alone.
struct drive_place {
  executor* on = nullptr;  ///< whose memory the controller reaches (open_executor_over)
  controller* owner = nullptr;
  u32 namespace_id = 1;
  u64 offset = 0;  ///< of the first element in the namespace, bytes; a multiple of a line
};

struct media_options {
  /// storage (behind a cache), host (the files mapped, in place), pinned (copied to pinned host memory, in place), host-cached
  /// (the files mapped, behind a cache), hbm (copied to the GPU), managed (moved there by the driver, page by page, anew in
  /// each trial: a baseline).
  std::string placement = "storage";
  u64 cache_bytes = 16ull << 20;
  u64 line_bytes = 4096;
  std::string directory = "auto";  ///< of the cache: auto, direct, set
  std::string executor = "auto";   ///< auto, cpu, cuda
  std::string engine = "auto";     ///< of the software controller: auto, io_uring, pread
  /// Ablation: disables one feature of the cache, one of cache, coalescing, validation, read-ahead.
  std::string ablate = "nothing";
  bool direct = false;  ///< bypasses the page cache (O_DIRECT)
  u32 threads = 0;      ///< CPU executor: its threads; CUDA: the controller's. 0: all cores
  u32 queues = 0;       ///< queue pairs of a controller; 0: one per CPU thread, 32 on CUDA
  u32 queue_depth = 256;
  std::string media = "file";       ///< of the placement storage: the files, or the preset of an emulated SSD
  u32 drives = 1;                   ///< emulated SSDs
  std::string layout = "striped";   ///< of the arrays on several of them: striped or replicated
  std::string media_place = "hbm";  ///< where the bytes of emulated SSDs lie: hbm or host
  u32 server_units = 0;             ///< SMs that serve emulated SSDs; 0: a third. CPU: threads, 0: polled in place
  /// Of the placement storage: this drive instead of the files.
  std::optional<drive_place> drive;
  progress_fn progress;
};

/// As asked; else one per core, as far as the cache has room for what they pin (at most half of the lines for edges, or for
/// weights, which may have half of the cache).
u32 cpu_threads(media_options const& options);

cache_options cache_options_of(media_options const& options, u64 bytes);

}  // namespace penstock::media
