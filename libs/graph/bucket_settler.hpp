// What becomes of a bucket once all its edges are there: they are sorted, of equal ones the lightest is kept if asked, and the
// edges of each vertex are counted, and summed for whether they go both ways (edge_fingerprint.hpp).
#pragma once

#include "libs/graph/bucket_sort.hpp"
#include "libs/graph/csr_builder.hpp"
#include "libs/graph/edge_fingerprint.hpp"
#include "libs/graph/vertex_bins.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace penstock::graph {

template <class Entry>
class bucket_settler {
 public:
  /// degrees: of all vertices, 0 at first.
  bucket_settler(unsigned workers, u32 to_bits, build_options const& options, std::span<u64> degrees)
      : to_bits_(to_bits), drop_duplicates_(options.drop_duplicates), sums_(options.check_both_ways), degrees_(degrees),
        scratch_(workers), balances_(workers) {}

  /// Leaves b.kept edges at b.begin of `buffer`. Thread-safe, for different buckets and workers.
  void settle(unsigned worker, bucket& b, std::span<Entry> buffer) {
    if (!scratch_[worker]) scratch_[worker] = std::make_unique_for_overwrite<Entry[]>(scratch_entries);
    std::span<Entry> const entries = buffer.subspan(b.begin, b.end - b.begin);
    u64 const base = b.first << to_bits_;
    bucket_sorter<Entry>({scratch_[worker].get(), scratch_entries}, base, to_bits_ + id_bits(b.last - b.first)).sort(entries);
    b.kept = keep(entries, b.first, base);
    if (sums_) balances_[worker] += balance(entries.first(b.kept), b.first, base);
  }

  /// Of all that was settled: 0 where each edge is there both ways.
  u64 balance() const { return std::accumulate(balances_.begin(), balances_.end(), u64{0}); }

 private:
  /// Three megabytes for each thread. A bucket that is longer has a vertex with very many edges.
  static constexpr u64 scratch_entries = u64{1} << 18;

  /// Orders equal edges by weight, drops what is to be dropped, closes the gaps, counts.
  u64 keep(std::span<Entry> entries, u64 first, u64 base) {
    u64 kept = 0;
    for (u64 i = 0; i < entries.size();) {
      u64 const key = entries[i].key();
      u64 end = i + 1;
      while (end < entries.size() && entries[end].key() == key) ++end;
      if (end - i > 1) order_by_weight(entries.subspan(i, end - i));
      u64 const count = drop_duplicates_ ? 1 : end - i;
      if (drop_duplicates_) entries[kept] = entries[i];
      degrees_[first + ((key - base) >> to_bits_)] += count;
      kept += count;
      i = end;
    }
    return kept;
  }

  u64 balance(std::span<Entry const> kept, u64 first, u64 base) const {
    u64 const mask = (u64{1} << to_bits_) - 1;
    u64 sum = 0;
    for (Entry const& e : kept) sum += signed_fingerprint({first + ((e.key() - base) >> to_bits_), e.key() & mask, e.weight()});
    return sum;
  }

  static void order_by_weight(std::span<Entry> equal) {
    std::sort(equal.begin(), equal.end(), [](Entry const& a, Entry const& b) { return a.weight() < b.weight(); });
  }

  u32 to_bits_;
  bool drop_duplicates_;
  bool sums_;
  std::span<u64> degrees_;
  std::vector<std::unique_ptr<Entry[]>> scratch_;
  std::vector<u64> balances_;  ///< of each worker
};

}  // namespace penstock::graph
