// How the vertices are shared out while their lists are built. Equal bins, so few that one pass over the edges counts each
// thread's in its cache; neighbouring bins together are a bucket, whose edges one thread sorts in its cache; neighbouring
// buckets together are a pass, whose edges fit the memory that there is.
#pragma once

#include "penstock/core/config.hpp"

#include <limits>
#include <vector>

namespace penstock::graph {

/// The vertices [first, last), whose edges lie in [begin, end) of the pass's buffer.
struct bucket {
  u64 first;
  u64 last;
  u64 begin;
  u64 end;
  u64 kept = 0;      ///< edges that are left of them, moved to `begin`
  u64 position = 0;  ///< of the first that is kept in the file
};

/// Bins [first, last) and how many edges they have.
struct bin_range {
  u64 first;
  u64 last;
  u64 edges;
};

struct bucket_pass {
  static constexpr u16 none = std::numeric_limits<u16>::max();

  std::vector<bucket> buckets{};
  std::vector<u16> bucket_of{};  ///< for each bin; `none` where it belongs to another pass
};

class vertex_bins {
 public:
  static constexpr u32 most_bins_bits = 14;

  /// REQUIRES: vertices <= 2^39, so that one bin is no wider than widest_bucket().
  explicit vertex_bins(u64 vertices);

  u64 count() const { return edges_.size(); }
  u64 of(u64 vertex) const { return vertex >> shift_; }

  /// Adds a thread's counts, count() of them.
  void add(std::vector<u64> const& edges);
  u64 total() const;
  u64 largest() const;

  /// Cuts the bins into passes of at most `most_edges`, or of one bin.
  std::vector<bin_range> passes(u64 most_edges) const;
  /// Cuts a pass into buckets.
  bucket_pass buckets(bin_range const& pass) const;

 private:
  u64 vertices_;
  u32 shift_;
  std::vector<u64> edges_;  ///< of each bin
};

}  // namespace penstock::graph
