#include "libs/bench/collage_host.hpp"

#include "libs/graph/parallel.hpp"
#include "penstock/host/error.hpp"

#include <bit>
#include <cmath>

// One body for several instruction sets, chosen when the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fast-math")))
#else
#define PENSTOCK_VECTOR_CLONES
#endif

namespace penstock::bench {
namespace {

PENSTOCK_VECTOR_CLONES void add_scaled(float* sums, float const* row, float by, u32 count) {
  for (u32 k = 0; k < count; ++k) sums[k] += row[k] * by;
}

}  // namespace

PENSTOCK_VECTOR_CLONES float squared_distance(float const* a, float const* b, u32 count) {
  float sum = 0;
  for (u32 k = 0; k < count; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

host_index::host_index(std::string const& folder, u32 threads, u32 max_candidates)
    : sections_(lsh::read_sections(folder)), records_(folder + "/" + lsh::records_name), index_(folder + "/" + lsh::index_name),
      threads_(graph::worker_count(threads)), max_candidates_(max_candidates) {}

std::vector<u32> host_index::empty_set() const { return std::vector<u32>(std::bit_ceil(2 * max_candidates_ + 64), lsh::no_id); }

std::vector<u64> host_index::keys_of(std::span<float const> queries) const {
  lsh::index_header const& h = sections_.header;
  const u64 count = queries.size() / h.dimensions;
  std::vector<u64> keys(count * h.tables);
  graph::progress_meter quiet;
  graph::parallel_for(count, threads_, quiet, [&](u64 q) {
    std::vector<float> sums(h.projections());
    for (u32 d = 0; d < h.dimensions; ++d) {
      const float v = queries[q * h.dimensions + d];
      if (v != 0) add_scaled(sums.data(), sections_.projections.data() + u64{d} * h.projections(), v, h.projections());
    }
    for (u32 t = 0; t < h.tables; ++t) {
      const u32 first = t * h.projections_per_table;
      keys[q * h.tables + t] =
          lsh::find_keys::key_of(sums.data() + first, sections_.shifts.data() + first, h.projections_per_table, 1.0f / h.width);
    }
  });
  return keys;
}

void host_index::candidates_of(u64 const* keys, std::vector<u32>& seen, std::vector<u32>& list) const {
  lsh::index_header const& h = sections_.header;
  auto const* const entries = reinterpret_cast<lsh::index_entry const*>(index_.data() + h.entries_at());
  const u64 mask = seen.size() - 1;
  std::vector<u64> taken;
  list.clear();
  for (u32 t = 0; t < h.tables && list.size() < max_candidates_; ++t) {
    u32 const* const bounds = sections_.offsets.data() + t * (h.buckets() + 1) + lsh::bucket_of(keys[t], h.bucket_bits);
    for (u32 k = bounds[0]; k < bounds[1] && list.size() < max_candidates_; ++k) {
      const lsh::index_entry entry = entries[t * h.records + k];
      if (entry.tag != lsh::tag_of(keys[t])) continue;
      u64 slot = mix_word(entry.id) & mask;
      while (seen[slot] != lsh::no_id && seen[slot] != entry.id) slot = (slot + 1) & mask;
      if (seen[slot] == entry.id) continue;
      seen[slot] = entry.id;
      taken.push_back(slot);
      list.push_back(entry.id);
    }
  }
  for (const u64 slot : taken) seen[slot] = lsh::no_id;
}

void host_index::query(std::span<float const> queries, std::vector<u32>& ids, std::vector<float>& distances) const {
  lsh::index_header const& h = sections_.header;
  const u64 count = queries.size() / h.dimensions;
  const std::vector<u64> keys = keys_of(queries);
  ids.assign(count, lsh::no_id);
  distances.assign(count, INFINITY);
  std::vector<std::vector<u32>> sets(threads_, empty_set()), lists(threads_);
  graph::progress_meter quiet;
  graph::parallel_for_workers(count, threads_, quiet, [&](u64 q, unsigned worker) {
    candidates_of(keys.data() + q * h.tables, sets[worker], lists[worker]);
    for (const u32 id : lists[worker]) {
      const float distance = squared_distance(queries.data() + q * h.dimensions, record(id), h.dimensions);
      if (distance < distances[q] || (distance == distances[q] && id < ids[q])) {
        distances[q] = distance;
        ids[q] = id;
      }
    }
  });
}

}  // namespace penstock::bench
