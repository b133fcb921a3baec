// Where the edges of a graph come from, block by block, so that no list of all edges is ever held. A source can be asked for
// any block, any number of times, by any thread, and answers the same each time: builders go over the edges more than once.
#pragma once

#include "penstock/core/config.hpp"

#include <functional>
#include <span>

namespace penstock::graph {

enum class weight_type : u8 { none, int32, float32 };

struct edge {
  u64 from = 0;
  u64 to = 0;
  u32 weight = 0;  ///< the bytes of the int32 or float32; 0 without weights
};

using edge_sink = std::function<void(std::span<edge const>)>;

class edge_source {
 public:
  virtual ~edge_source() = default;

  virtual u64 vertices() const = 0;
  virtual weight_type weights() const = 0;
  virtual u64 blocks() const = 0;
  /// Hands the edges of one block to `sink` in batches of a few thousand. Every id is below vertices(). Thread-safe.
  /// Errors: bad_input, naming the place, when an edge cannot be.
  virtual void produce(u64 block, edge_sink const& sink) const = 0;
  /// How often a builder may go over all edges to save memory; low where a pass is slow.
  virtual u64 worthwhile_passes() const { return 8; }
  /// Memory that the source holds as long as it lives, in bytes, where that grows with the graph.
  virtual u64 held_bytes() const { return 0; }
};

}  // namespace penstock::graph
