// What every algorithm over a stored graph is asked, and what it tells of its cost.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/executor/executor.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace penstock::apps {

/// Edges that lie on a drive as they do in their file, which is then read for verification alone.
struct graph_drive {
  executor* on = nullptr;  ///< whose memory the controller reaches (open_executor_over)
  controller* owner = nullptr;
  u32 namespace_id = 1;
  u64 offset = 0;  ///< of the first edge in the namespace, bytes; a multiple of a line
};

struct graph_options {
  std::string graph;  ///< folder with offsets.npy, edges.npy, graph.json, and weights.npy for shortest paths
  /// Where edges and weights lie: storage (behind a cache), host (their files mapped, in place), pinned (copied to pinned host
  /// memory, in place), host-cached (their files mapped, behind a cache), hbm (copied to the GPU), managed (moved there by the
  /// driver, page by page, anew in each trial: a baseline), subgraph (each round's lists are put together by CPU threads and
  /// copied to the GPU: another one).
  std::string placement = "storage";
  std::string strategy = "auto";  ///< how groups share out edges: parse_strategy
  u64 cache_bytes = 16ull << 20;
  u64 line_bytes = 4096;
  std::string directory = "auto";  ///< of the cache: auto, direct, set
  std::string executor = "auto";   ///< auto, cpu, cuda
  std::string engine = "auto";     ///< of the software controller: auto, io_uring, pread
  /// Of the cache: what to do without, to see what it is worth: cache, coalescing, validation, read-ahead.
  std::string without = "nothing";
  bool direct = false;  ///< past the page cache
  u32 threads = 0;      ///< CPU executor: its threads; CUDA: the controller's. 0: all cores
  u32 queues = 0;       ///< queue pairs of a controller; 0: one per CPU thread, 32 on CUDA
  u32 queue_depth = 256;
  std::string media = "file";       ///< of the placement storage: the files, or the preset of a drive that is modelled
  u32 drives = 1;                   ///< modelled ones
  std::string layout = "striped";   ///< of the graph on several of them: striped, or replicated: each has all of it
  std::string media_place = "hbm";  ///< where the bytes of modelled drives lie: hbm or host
  u32 server_units = 0;             ///< SMs that serve modelled drives; 0: a third. CPU: threads, 0: polled in place
  u32 trials = 1;  ///< runs over the graph once it is open, each from another source; what is behind a cache stays there
  std::string sources = "gap";  ///< that trials begin at: gap, emogi (vertices that have edges), bam (more than two)
  bool level_traffic = false;   ///< what each round moved is told, which costs a look at the counters of the caches
  bool verify = false;          ///< the last trial
  /// (what, done, total), on the calling thread; may throw to stop.
  std::function<void(std::string const&, u64, u64)> progress;
  /// Of the placement storage: this drive instead of the files. For searches without weights.
  std::optional<graph_drive> drive;
};

/// Of the last trial. Bytes and times are of the algorithm alone unless they say otherwise.
struct graph_cost {
  u64 edges_traversed = 0;  ///< neighbours looked at; both directions of an undirected edge count
  double seconds = 0;
  double teps = 0;  ///< edges_traversed per second
  std::vector<double> trial_seconds;
  std::vector<u64> trial_sources;  ///< of algorithms that have one
  std::optional<bool> verified;
  std::string violation;  ///< one sentence on the vertex and the rule, where the result was wrong
  std::string executor, device, engine, placement, strategy, media;
  u32 drives = 0;
  double media_bytes_per_second = 0;  ///< of modelled drives together; 0: not modelled
  u64 hits = 0, misses = 0, joins = 0, fills = 0, prefetches = 0, evictions = 0, retries = 0, errors = 0;
  u64 bytes_asked = 0;       ///< of edges and weights looked at
  u64 bytes_moved = 0;       ///< lines brought from storage x line size
  double amplification = 0;  ///< moved / asked
  u64 sector_bytes = 0;      ///< of edges that a GPU reads in place: 32 for each sector that a group asked for
  u64 frames = 0, line_bytes = 0, cache_bytes = 0, metadata_bytes = 0;
  std::string directory;            ///< direct, set
  u64 directory_bytes_per_tib = 0;  ///< of edges, at this cache's ratio of directory to edges
  u64 edge_bytes = 0;               ///< with weights, where they are read
  u64 offset_bytes = 0, vertex_bytes = 0;
  u64 tile_bytes = 0;       ///< of tables over tiles
  double tile_seconds = 0;  ///< of load_seconds: making the table of first vertices
  double load_seconds = 0;  ///< opening, offsets, memory, queues
  double verify_seconds = 0;
  std::vector<u64> level_sizes;  ///< vertices of each round
  std::vector<double> level_seconds;
  std::vector<std::string> level_strategies;
  std::vector<u64> level_bytes;  ///< moved, or of sectors; empty where it was not asked for, or a CPU reads in place
  u64 peak_rss_bytes =
      0;  ///< of the process, while it loaded and ran; file_rss_bytes of it are page cache seen through a mapping
  u64 file_rss_bytes = 0;
};

}  // namespace penstock::apps
