// What every algorithm over a stored graph is asked, and what it tells of its cost.
#pragma once

#include "libs/media/media_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace penstock::analytics {

/// Where edges and weights lie is said by media_options. One more placement is subgraph: CPU threads gather the lists of a
/// round and copy them to the GPU (a baseline).
struct graph_options : media::media_options {
  std::string graph;              ///< folder with offsets.npy, edges.npy, graph.json, and weights.npy for shortest paths
  std::string strategy = "auto";  ///< how groups share out edges: parse_strategy
  u32 trials = 1;  ///< runs over the graph once it is open, each from another source; what is behind a cache stays there
  std::string sources = "gap";  ///< that trials begin at: gap, emogi (vertices that have edges), bam (more than two)
  bool level_traffic = false;   ///< what each round moved is told, which costs a look at the counters of the caches
  bool verify = false;          ///< the last trial
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

}  // namespace penstock::analytics
