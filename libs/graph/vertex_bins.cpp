#include "libs/graph/vertex_bins.hpp"

#include "libs/graph/packed_edge.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::graph {
namespace {

/// Half a megabyte of packed edges and as much to sort them into: a core's own cache.
constexpr u64 good_bucket_edges = u64{1} << 16;
/// More buckets than this, and what threads collect for each of them no longer fits that cache.
constexpr u64 good_buckets = u64{1} << 13;

u32 shift_for(u64 vertices) {
  u32 const bits = id_bits(vertices);
  return bits - std::min(bits, vertex_bins::most_bins_bits);
}

}  // namespace

vertex_bins::vertex_bins(u64 vertices)
    : vertices_(vertices), shift_(shift_for(vertices)), edges_(((std::max<u64>(vertices, 1) - 1) >> shift_) + 1) {}

void vertex_bins::add(std::vector<u64> const& edges) {
  for (u64 bin = 0; bin < count(); ++bin) edges_[bin] += edges[bin];
}

u64 vertex_bins::total() const { return std::accumulate(edges_.begin(), edges_.end(), u64{0}); }

u64 vertex_bins::largest() const { return *std::max_element(edges_.begin(), edges_.end()); }

std::vector<bin_range> vertex_bins::passes(u64 most_edges) const {
  std::vector<bin_range> cut;
  for (u64 first = 0; first < count();) {
    bin_range pass{first, first, 0};
    while (pass.last < count() && (pass.last == first || pass.edges + edges_[pass.last] <= most_edges))
      pass.edges += edges_[pass.last++];
    cut.push_back(pass);
    first = pass.last;
  }
  return cut;
}

bucket_pass vertex_bins::buckets(bin_range const& pass) const {
  u64 const good = std::max(good_bucket_edges, pass.edges / good_buckets);
  u64 const most_bins = widest_bucket(vertices_) >> shift_;
  bucket_pass made;
  made.bucket_of.assign(count(), bucket_pass::none);
  u64 begin = 0;
  for (u64 bin = pass.first; bin < pass.last;) {
    bucket b{bin << shift_, 0, begin, begin};
    u64 const index = made.buckets.size(), end = bin + std::min(pass.last - bin, most_bins);
    while (bin < end && (b.end == begin || b.end + edges_[bin] <= begin + good)) {
      made.bucket_of[bin] = static_cast<u16>(index);
      b.end += edges_[bin++];
    }
    b.last = std::min(bin << shift_, vertices_);
    made.buckets.push_back(b);
    begin = b.end;
  }
  return made;
}

}  // namespace penstock::graph
