// The collage's search by threads of the host: vectorized, records and buckets mapped from their files.
#pragma once

#include "libs/bench/mapped_file.hpp"
#include "libs/lsh/lsh_index.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::bench {

class host_index {
 public:
  host_index(std::string const& folder, u32 threads, u32 max_candidates);

  /// The nearest record of each query and its squared distance.
  void query(std::span<float const> queries, std::vector<u32>& ids, std::vector<float>& distances) const;
  /// Keys of each query's tables. [queries][tables]
  std::vector<u64> keys_of(std::span<float const> queries) const;
  /// The candidates of some keys, as lsh::make_shortlists has them. `seen` is empty, and is emptied again.
  void candidates_of(u64 const* keys, std::vector<u32>& seen, std::vector<u32>& list) const;

  lsh::index_header const& header() const { return sections_.header; }
  float const* record(u32 id) const {
    return reinterpret_cast<float const*>(records_.data() + u64{id} * sections_.header.record_bytes);
  }
  u32 threads() const { return threads_; }
  u32 max_candidates() const { return max_candidates_; }
  /// Of a set for candidates_of.
  std::vector<u32> empty_set() const;

 private:
  lsh::index_sections sections_;
  mapped_file records_, index_;
  u32 threads_, max_candidates_;
};

/// Squared Euclidean, of `count` numbers.
float squared_distance(float const* a, float const* b, u32 count);

}  // namespace penstock::bench
