// What groups do for an index of nearest neighbours: hash vectors, make shortlists, compare records, select the nearest.
#pragma once

#include "libs/lsh/lsh_layout.hpp"
#include "libs/lsh/record_sources.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/executor/launch.hpp"

#include <bit>

namespace penstock::lsh {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;
#else
inline constexpr bool has_kernels = false;
#endif

inline constexpr u32 group_width = 32;  ///< lanes to a vector, on CUDA
inline constexpr u32 no_id = ~u32{0};

/// The family of hash functions, in local memory.
struct hash_family {
  float const* projections;  ///< [dimensions][tables * projections_per_table]
  float const* shifts;       ///< [tables * projections_per_table]
  u32 dimensions;
  u32 tables;
  u32 projections_per_table;
  u32 bucket_bits;
  float inverse_width;

  PENSTOCK_FN u32 count() const { return tables * projections_per_table; }
};

/// Dot products of an item's vector with all projections. Their sums do not depend on the executor where products and sums are
/// exact: projections are multiples of 1/64, so for vectors of integers up to about 2^18 in sum.
template <class Source>
struct project_vectors {
  Source source;
  u64 first;  ///< of the source
  hash_family family;
  float* products;  ///< [items][family.count()]
  u32* failed;      ///< an errno

  static constexpr u32 at_once = 8;  // sums of a lane

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      float* const to = products + k * family.count();
      for (u32 begin = 0; begin < family.count(); begin += at_once * size(g)) project(g, k, begin, to);
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN void project(Group const& g, u64 k, u32 begin, float* to) const {
    float sums[at_once] = {};
    const u32 step = size(g), mine = begin + index_in(g), all = family.count();
    const u32 error = source.each_piece(g, first + k, family.dimensions, [&](u32 d, float const* piece, u32 count) {
      for (u32 i = 0; i < count; ++i) {
        const float v = piece[i];
        if (v == 0) continue;  // of all lanes
        float const* const row = family.projections + u64{d + i} * all + mine;
        PENSTOCK_UNROLL
        for (u32 j = 0; j < at_once; ++j) {
          if (mine + j * step < all) sums[j] += row[j * step] * v;
        }
      }
    });
    if (error != 0) note_failure(failed, error);
    for (u32 j = 0; j < at_once; ++j) {
      if (mine + j * step < all) to[mine + j * step] = sums[j];
    }
  }
};

/// The keys of an item's products, one for each table.
struct find_keys {
  float const* products;  ///< [items][family.count()]
  hash_family family;
  u64* keys;  ///< [items][family.tables]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      for (u32 t = index_in(g); t < family.tables; t += size(g)) {
        const u32 first = t * family.projections_per_table;
        keys[k * family.tables + t] = key_of(products + k * family.count() + first, family.shifts + first,
                                             family.projections_per_table, family.inverse_width);
      }
    }
  }

  /// Of the products of one table.
  PENSTOCK_FN static u64 key_of(float const* products, float const* shifts, u32 count, float inverse_width) {
    u64 key = 0;
    for (u32 j = 0; j < count; ++j) {
      const float cell = floorf((products[j] + shifts[j]) * inverse_width);
      key = mix_word(key ^ std::bit_cast<u32>(cell == 0 ? 0.0f : cell));  // there is one zero
    }
    return key;
  }
};

/// Brings the buckets of an item, a query's table, into the cache, as much of them as a list may need: the shortlists are made
/// by fewer groups, which would wait for one bucket after the other.
template <class Entries>
struct touch_buckets {
  Entries entries;
  u32 const* offsets;  ///< as in make_shortlists
  u64 const* keys;
  u64 records;
  u32 tables;
  u32 bucket_bits;
  u32 room;
  u32* failed;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 t = k % tables;
      u32 const* const bounds = offsets + t * ((u64{1} << bucket_bits) + 1) + bucket_of(keys[k], bucket_bits);
      const u32 all = bounds[1] - bounds[0], count = all < room ? all : room;
      const u32 error = entries.each_piece(g, t * records + bounds[0], count, [](index_entry const*, u32) {});
      if (error != 0) note_failure(failed, error);
    }
  }
};

/// The distinct ids of an item's keys, in the order of tables and of their lists, up to `room` of them; where there are
/// none, `fallback` ids that are spread evenly.
template <class Entries>
struct make_shortlists {
  Entries entries;     ///< all tables', one after the other
  u32 const* offsets;  ///< [tables][buckets + 1]
  u64 const* keys;     ///< [items][tables]
  u64 records;
  u32 tables;
  u32 bucket_bits;
  u32 room;      ///< of a list
  u32 fallback;  ///< at most `room`
  u32* seen;     ///< [items][slots]: a set of ids by open addressing
  u32 slots;     ///< a power of two of at least 2 * room
  u32* lists;    ///< [items][room]
  u32* counts;   ///< [items]
  u32* cut;      ///< items with more than `room`
  u32* failed;   ///< an errno

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      u32* const set = seen + k * slots;
      for (u32 i = index_in(g); i < slots; i += size(g)) set[i] = no_id;
      converge_after_call(g);
      u32 count = 0;
      for (u32 t = 0; t < tables && count <= room; ++t) count = add_bucket(g, k, t, set, count);  // one more: it is cut
      if (count == 0) count = add_fallback(g, k);
      if (is_leader(g)) counts[k] = count < room ? count : room;
      if (is_leader(g) && count > room) device_ref<u32>(*cut).fetch_add(1, relaxed);
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN u32 add_bucket(Group const& g, u64 k, u32 t, u32* set, u32 count) const {
    const u64 key = keys[k * tables + t];
    u32 const* const bounds = offsets + t * ((u64{1} << bucket_bits) + 1) + bucket_of(key, bucket_bits);
    const u64 begin = u64{t} * records + bounds[0];
    const u32 error = entries.each_piece(g, begin, bounds[1] - bounds[0], [&](index_entry const* piece, u32 piece_count) {
      // Ids of a table are distinct, so the members of a strip insert different ones.
      for (u32 strip = 0; strip < piece_count && count <= room; strip += size(g)) {
        const u32 i = strip + index_in(g);
        const index_entry entry = i < piece_count ? piece[i] : index_entry{no_id, ~tag_of(key)};
        const bool wanted = entry.tag == tag_of(key);
        if (wanted && entry.id >= records) note_failure(failed, EILSEQ);
        const bool is_new = wanted && entry.id < records && insert(set, entry.id);
        const auto added = g.ballot(is_new);
        const u32 at = count + count_below(added, g.rank());
        if (is_new && at < room) lists[k * room + at] = entry.id;
        count += penstock::count(added);
      }
    });
    if (error != 0) note_failure(failed, error);
    return count;
  }

  /// Whether it was not there. The set is never full: at most `room` + 32 of its slots are taken.
  PENSTOCK_FN bool insert(u32* set, u32 id) const {
    for (u32 slot = static_cast<u32>(mix_word(id)) & (slots - 1);; slot = (slot + 1) & (slots - 1)) {
      u32 there = no_id;
      if (device_ref<u32>(set[slot]).compare_exchange_strong(there, id, relaxed, relaxed)) return true;
      if (there == id) return false;
    }
  }

  template <class Group>
  PENSTOCK_FN u32 add_fallback(Group const& g, u64 k) const {
    const u32 some = static_cast<u32>(fallback < records ? fallback : records);
    for (u32 i = index_in(g); i < some; i += size(g)) lists[k * room + i] = static_cast<u32>(i * records / some);
    return some;
  }
};

/// Squared distances of a query and up to `piece` of the records of its list.
template <class Source>
struct compare_records {
  Source source;
  float const* queries;  ///< [queries][stride]
  u32 dimensions;
  u32 stride;         ///< dimensions rounded up to a multiple of 4; what lies between is 0
  u32 const* lists;   ///< [queries][room]; null: all records from `first_id` on
  u32 const* counts;  ///< [queries]
  u64 first_id;
  u64 query_count;
  u32 room;
  float* distances;  ///< [queries][room]
  u32* failed;       ///< an errno

  static constexpr u32 piece = 8;

  /// Of items, all queries' first pieces come first: lists differ in length, and so the last ones do nothing.
  PENSTOCK_FN u64 items() const { return query_count * ((room + piece - 1) / piece); }

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      // What has failed is an error anyway, and each further read of a file that was cut is a command.
      if (from_leader(g, device_ref<u32>(*failed).load(relaxed)) != 0) return;
      const u64 query = k % query_count;
      const u32 begin = static_cast<u32>(k / query_count) * piece, count = counts[query];
      for (u32 c = begin; c < begin + piece && c < count; ++c) compare(g, query, c);
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN void compare(Group const& g, u64 query, u32 c) const {
    const u64 id = lists != nullptr ? lists[query * room + c] : first_id + c;
    float sums[4] = {};
    auto const* const asked = reinterpret_cast<four_floats const*>(queries + query * stride);
    const u32 error = source.each_four(g, id, dimensions, [&](u32 at, four_floats const& there) {
      const four_floats here = asked[at];
      PENSTOCK_UNROLL
      for (u32 j = 0; j < 4; ++j) {
        const float difference = here.v[j] - there.v[j];
        sums[j] += difference * difference;
      }
    });
    if (error != 0) note_failure(failed, error);
    const float distance = sum_over(g, sums[0] + sums[1] + (sums[2] + sums[3]));
    if (is_leader(g)) distances[query * room + c] = distance;
  }
};

/// The nearest of an item's list, ascending by distance, then by id; no_id behind the last one.
struct select_nearest {
  u32 const* lists;  ///< as in compare_records
  u32 const* counts;
  u64 first_id;
  u32 room;
  float const* distances;  ///< [items][room]
  u32 nearest;
  u32* ids;                ///< [items][nearest]
  float* their_distances;  ///< [items][nearest]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      u64 last = 0;
      for (u32 j = 0; j < nearest; ++j) {
        const u64 found = next_of(g, k, j == 0 ? nullptr : &last);
        if (is_leader(g)) {
          ids[k * nearest + j] = static_cast<u32>(found);
          their_distances[k * nearest + j] = std::bit_cast<float>(static_cast<u32>(found >> 32));
        }
        last = found;
      }
    }
  }

 private:
  static constexpr u64 none = u64{0x7f800000} << 32 | no_id;  // infinity

  /// The least (distance, id) behind `last`. Distances are not negative, so their bits have their order.
  template <class Group>
  PENSTOCK_FN u64 next_of(Group const& g, u64 k, u64 const* last) const {
    u64 least = none;
    for (u32 c = index_in(g); c < counts[k]; c += size(g)) {
      const u32 id = lists != nullptr ? lists[k * room + c] : static_cast<u32>(first_id + c);
      const u64 here = u64{std::bit_cast<u32>(distances[k * room + c])} << 32 | id;
      if (here < least && (last == nullptr || here > *last)) least = here;
    }
    return least_over(g, least);
  }
};

}  // namespace penstock::lsh
