// Where kernels of an index read records and entries: files, arrays behind a cache, or memory. Each calls a function with what
// it read, in place; every member of the group is there for it.
#pragma once

#include "libs/lsh/lsh_layout.hpp"
#include "penstock/array/array_view.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/file/folder_view.hpp"

#include <bit>
#include <cmath>

namespace penstock::lsh {

struct alignas(16) four_floats {
  float v[4];
};

/// The first of them stays.
PENSTOCK_FN inline void note_failure(u32* failed, u32 error) {
  u32 none = 0;
  device_ref<u32>(*failed).compare_exchange_strong(none, error, relaxed, relaxed);
}

/// Of what the members have. Each lane of a power of two without holes exchanges with one other at a time.
template <class Group, class Combine>
PENSTOCK_FN u64 combine_over(Group const& g, u64 mine, Combine const& combine) {
  const u32 n = size(g), index = index_in(g);
  if ((n & (n - 1)) == 0) {
    for (u32 step = 1; step < n; step *= 2) mine = combine(mine, g.shfl(mine, nth(g.members(), index ^ step)));
    return mine;
  }
  u64 all = g.shfl(mine, nth(g.members(), 0));
  for (u32 i = 1; i < n; ++i) all = combine(all, g.shfl(mine, nth(g.members(), i)));
  return all;
}
template <class Group>
PENSTOCK_FN float sum_over(Group const& g, float mine) {
  const u64 all = combine_over(g, std::bit_cast<u32>(mine), [](u64 a, u64 b) {
    return u64{std::bit_cast<u32>(std::bit_cast<float>(static_cast<u32>(a)) + std::bit_cast<float>(static_cast<u32>(b)))};
  });
  return std::bit_cast<float>(static_cast<u32>(all));
}
template <class Group>
PENSTOCK_FN u64 least_over(Group const& g, u64 mine) {
  return combine_over(g, mine, [](u64 a, u64 b) { return a < b ? a : b; });
}

/// Bytes of a file, in place. An errno; EIO where the file is shorter.
template <class Group, class Use>
PENSTOCK_FN u32 each_mapped(Group const& g, folder_view const& folder, file_descriptor const& file, u64 offset, u64 bytes,
                            Use const& use) {
  for (u64 at = 0; at < bytes;) {
    const mapped_bytes mapped = folder.map(g, file, offset + at, bytes - at, file_flag::read);
    if (!mapped.ok()) return mapped.error;
    if (mapped.count == 0) return EIO;
    use(at, mapped.bytes, mapped.count);
    at += mapped.count;
    folder.unmap(g, file, mapped);
  }
  return 0;
}

/// Records of a file. REQUIRES: record_bytes and the cache's lines are multiples of 16.
struct file_records {
  folder_view folder;
  file_descriptor file;
  u64 record_bytes;

  /// use(first element, elements, how many), the same for all members.
  template <class Group, class Use>
  PENSTOCK_FN u32 each_piece(Group const& g, u64 record, u32 dimensions, Use const& use) const {
    return each_mapped(g, folder, file, record * record_bytes, u64{dimensions} * sizeof(float),
                       [&](u64 at, char const* bytes, u64 count) {
                         use(static_cast<u32>(at / sizeof(float)), reinterpret_cast<float const*>(bytes),
                             static_cast<u32>(count / sizeof(float)));
                       });
  }
  /// use(k, elements 4k to 4k + 3), each for one member; what lies behind the last element is 0.
  template <class Group, class Use>
  PENSTOCK_FN u32 each_four(Group const& g, u64 record, u32 dimensions, Use const& use) const {
    return each_mapped(g, folder, file, record * record_bytes, u64{dimensions} * sizeof(float),
                       [&](u64 at, char const* bytes, u64 count) {
                         use_fours(g, static_cast<u32>(at / 16), bytes, static_cast<u32>(count / sizeof(float)), use);
                       });
  }

  /// Of `count` elements at `bytes`.
  template <class Group, class Use>
  PENSTOCK_FN static void use_fours(Group const& g, u32 first, char const* bytes, u32 count, Use const& use) {
    for (u32 k = index_in(g); k < count / 4; k += size(g)) use(first + k, reinterpret_cast<four_floats const*>(bytes)[k]);
    if (count % 4 == 0 || index_in(g) != count / 4 % size(g)) return;
    four_floats last{};
    for (u32 j = 0; j < count % 4; ++j) last.v[j] = reinterpret_cast<float const*>(bytes)[count / 4 * 4 + j];
    use(first + count / 4, last);
  }
};

/// Records in the executor's memory.
struct memory_records {
  char const* base;
  u64 record_bytes;

  template <class Group, class Use>
  PENSTOCK_FN u32 each_piece(Group const&, u64 record, u32 dimensions, Use const& use) const {
    use(0, reinterpret_cast<float const*>(base + record * record_bytes), dimensions);
    return 0;
  }
  template <class Group, class Use>
  PENSTOCK_FN u32 each_four(Group const& g, u64 record, u32 dimensions, Use const& use) const {
    file_records::use_fours(g, 0, base + record * record_bytes, dimensions, use);
    return 0;
  }
};

/// Records of an array behind a cache, which keeps the errors of its reads.
struct array_records {
  array_view<four_floats> array;
  u64 record_bytes;

  /// REQUIRES: dimensions are a multiple of 4, or what follows in the record is 0.
  template <class Group, class Use>
  PENSTOCK_FN u32 each_four(Group const& g, u64 record, u32 dimensions, Use const& use) const {
    const u64 first = record * (record_bytes / 16);
    array.read_span(g, first, (dimensions + 3) / 4,
                    [&](u64 i, four_floats const& there) { use(static_cast<u32>(i - first), there); });
    return 0;
  }
};

/// Entries of an index file, from a byte on.
struct file_entries {
  folder_view folder;
  file_descriptor file;
  u64 begin;

  /// use(entries, how many), the same for all members.
  template <class Group, class Use>
  PENSTOCK_FN u32 each_piece(Group const& g, u64 first, u64 count, Use const& use) const {
    return each_mapped(g, folder, file, begin + first * sizeof(index_entry), count * sizeof(index_entry),
                       [&](u64, char const* bytes, u64 got) {
                         use(reinterpret_cast<index_entry const*>(bytes), static_cast<u32>(got / sizeof(index_entry)));
                       });
  }
};

/// Entries in the executor's memory.
struct memory_entries {
  index_entry const* base;

  template <class Group, class Use>
  PENSTOCK_FN u32 each_piece(Group const&, u64 first, u64 count, Use const& use) const {
    use(base + first, static_cast<u32>(count));
    return 0;
  }
};

}  // namespace penstock::lsh
