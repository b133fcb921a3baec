// Breadth-first search over a graph whose edges stay on storage: the main job of Penstock's command line.
#pragma once

#include "penstock/core/config.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace penstock::apps {

struct bfs_options {
  std::string graph;          ///< folder with offsets.npy, edges.npy, graph.json
  std::optional<u64> source;  ///< none: drawn with a fixed seed among the vertices that have edges
  u64 cache_bytes = 16ull << 20;
  u64 line_bytes = 4096;
  std::string directory = "auto";  ///< of the cache: auto, direct, set
  std::string executor = "auto";   ///< auto, cpu, cuda
  std::string engine = "auto";     ///< of the software controller: auto, io_uring, pread
  bool direct = false;             ///< past the page cache
  bool in_memory = false;          ///< edges wholly in the executor's memory: the baseline of what storage costs
  u32 threads = 0;                 ///< CPU executor: its threads; CUDA: the controller's. 0: all cores
  u32 queue_depth = 256;
  bool verify = false;
  /// (what, done, total), on the calling thread; may throw to stop.
  std::function<void(std::string const&, u64, u64)> progress;
};

/// Bytes and times are of the search alone unless they say otherwise.
struct bfs_result {
  u64 source = 0;
  u64 reached = 0;          ///< vertices, the source included
  u64 levels = 0;           ///< frontiers that were not empty
  u64 edges_traversed = 0;  ///< neighbours looked at; both directions of an undirected edge count
  double seconds = 0;
  double teps = 0;  ///< edges_traversed per second
  std::optional<bool> verified;
  std::string violation;  ///< one sentence on the vertex and the rule, where the search was wrong
  std::string executor, device, engine;
  u64 hits = 0, misses = 0, joins = 0, fills = 0, prefetches = 0, evictions = 0, retries = 0, errors = 0;
  u64 bytes_asked = 0;       ///< neighbours looked at x size of an id
  u64 bytes_moved = 0;       ///< lines brought from storage x line size
  double amplification = 0;  ///< moved / asked
  u64 frames = 0, line_bytes = 0, cache_bytes = 0, metadata_bytes = 0;
  std::string directory;            ///< direct, set
  u64 directory_bytes_per_tib = 0;  ///< of edges, at this cache's ratio of directory to edges
  u64 edge_bytes = 0, offset_bytes = 0, vertex_bytes = 0;
  double load_seconds = 0;  ///< opening, offsets, memory, queues
  double verify_seconds = 0;
  std::vector<u64> level_sizes;
  std::vector<double> level_seconds;
  u64 peak_rss_bytes =
      0;  ///< of the process, while it loaded and searched; file_rss_bytes of it are page cache seen through a mapping
  u64 file_rss_bytes = 0;
};

/// Throws penstock::error: bad_input for options or a graph that cannot be; world when storage failed.
bfs_result run_bfs(bfs_options const& options);

}  // namespace penstock::apps
