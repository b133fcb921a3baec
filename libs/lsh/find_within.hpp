// Approximate search of images by brute force (GPUfs: Silberstein et al., TOCS 2014; Shahar and Silberstein, SYSTOR 2016,
// section 6.2): for each query the first record of several sets, in their order, that lies within a distance.
#pragma once

#include "libs/lsh/lsh_index.hpp"

#include <span>
#include <string>
#include <vector>

namespace penstock::lsh {

inline constexpr u64 no_match = ~u64{0};

/// Bytes of a file, in place; a line has whole records. REQUIRES: line_bytes is a multiple of record_bytes.
struct file_range {
  folder_view folder;
  file_descriptor file;

  template <class Group, class Use>
  PENSTOCK_FN u32 operator()(Group const& g, u64 offset, u64 bytes, Use const& use) const {
    return each_mapped(g, folder, file, offset, bytes, use);
  }
};

/// Bytes of the executor's memory.
struct memory_range {
  char const* base;

  template <class Group, class Use>
  PENSTOCK_FN u32 operator()(Group const&, u64 offset, u64 bytes, Use const& use) const {
    use(u64{0}, base + offset, bytes);
    return 0;
  }
};

/// Compares a chunk of records with a tile of queries. What a query has found further ahead already is not looked for again.
template <class Range>
struct match_records {
  Range range;
  u64 records;
  u64 record_bytes;
  u32 set;
  float const* queries;  ///< [query_count][stride], padded by 0 to a multiple of 4, and queries to one of `tile`
  u32 dimensions;        ///< a multiple of 4
  u32 stride;
  u32 query_count;
  float threshold;  ///< of the squared distance
  u64* found;       ///< [query_count] set << 32 | record, or no_match
  u32* failed;      ///< an errno

  static constexpr u32 tile = 16, chunk = 16;

  PENSTOCK_FN u64 tiles() const { return (query_count + tile - 1) / tile; }
  PENSTOCK_FN u64 items() const { return (records + chunk - 1) / chunk * tiles(); }

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range_of_items) const {
    for (u64 k = range_of_items.first; k < range_of_items.last; k += range_of_items.step) {
      const u64 first = k / tiles() * chunk, count = first + chunk < records ? chunk : records - first;
      const u32 query = static_cast<u32>(k % tiles()) * tile;
      if (!is_wanted(g, query, first)) continue;
      const u32 error = range(g, first * record_bytes, count * record_bytes, [&](u64 at, char const* bytes, u64 some) {
        for (u64 r = 0; r < some; r += record_bytes) {
          compare(g, query, first + (at + r) / record_bytes, reinterpret_cast<four_floats const*>(bytes + r));
        }
      });
      if (error != 0) note_failure(failed, error);
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN bool is_wanted(Group const& g, u32 query, u64 first) const {
    bool wanted = false;
    for (u32 q = query + index_in(g); q < query + tile && q < query_count; q += size(g)) {
      wanted |= device_ref<u64>(found[q]).load(relaxed) > (u64{set} << 32 | first);
    }
    return any(g.ballot(wanted));
  }

  template <class Group>
  PENSTOCK_FN void compare(Group const& g, u32 query, u64 record, four_floats const* there) const {
    float sums[tile] = {};
    for (u32 i = index_in(g); i < dimensions / 4; i += size(g)) {
      const four_floats mine = there[i];
      PENSTOCK_UNROLL
      for (u32 q = 0; q < tile; ++q) {
        const four_floats asked = reinterpret_cast<four_floats const*>(queries + u64{query + q} * stride)[i];
        float sum = 0;
        PENSTOCK_UNROLL
        for (u32 j = 0; j < 4; ++j) sum += (mine.v[j] - asked.v[j]) * (mine.v[j] - asked.v[j]);
        sums[q] += sum;
      }
    }
    PENSTOCK_UNROLL
    for (u32 q = 0; q < tile; ++q) {
      const float distance = sum_over(g, sums[q]);
      if (is_leader(g) && query + q < query_count && distance <= threshold) {
        lower_to(found[query + q], u64{set} << 32 | record);
      }
    }
  }
};

struct within_options {
  std::string executor = "auto";
  u64 cache_bytes = 0;  ///< 0: 256 MiB, on a GPU 2 GiB
  u64 line_bytes = 65536;
  u32 threads = 0;
};

struct within_result {
  std::vector<u64> found;  ///< [queries] set << 32 | record, or no_match
  double seconds = 0;
  cache_stats cache;
};

/// `sets`: names of files in `folder`, with records of `record_bytes` each, a power of two of at least 4 * dimensions bytes;
/// `queries`: [n][dimensions]. Throws penstock::error.
within_result find_within(std::string const& folder, std::vector<std::string> const& sets, u64 record_bytes, u32 dimensions,
                          std::span<float const> queries, float distance, within_options const& options);

}  // namespace penstock::lsh
