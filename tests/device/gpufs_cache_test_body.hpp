// GPUfs's cache under groups: random pieces of several files through fewer frames than their pages.
#pragma once

#include "libs/bench/gpufs_view.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

/// Byte i of file f of the fixture.
PENSTOCK_FN inline u8 gpufs_byte(u32 file, u64 i) { return static_cast<u8>(scatter(i / 8 + (u64{file} << 40)) >> (i % 8 * 8)); }

struct gpufs_reads_body {
  static constexpr u64 room = 4096;  ///< bytes of a group's memory, the longest read

  bench::gpufs_view cache;
  std::byte* rooms;  ///< [groups of a run][room]
  u32 files;
  u64 file_bytes;
  u32 rounds;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    std::byte* const to = rooms + c.group * room;
    for (u32 k = 0; k < rounds; ++k) {
      const u64 draw = random_word(c.seed(), c.group, k);
      const u32 file = static_cast<u32>(draw % files);
      const u64 unit = draw >> 63 != 0 ? 16 : 1, count = ((draw >> 8) % (room / unit) + 1) * unit;
      const u64 from = (draw >> 24) % (file_bytes - count + 1) / unit * unit;
      const bench::gpufs_error error = cache.read(g, c.group, file, from, count, to);
      if (!PENSTOCK_CHECK_EQ(*c.report, bench::gpufs_error::none, error)) return;
      converge_after_call(g);
      for (u64 i = index_in(g); i < count; i += size(g)) {
        if (!PENSTOCK_CHECK_EQ(*c.report, gpufs_byte(file, from + i), static_cast<u8>(to[i]))) break;
      }
      converge_after_call(g);
    }
    PENSTOCK_CHECK_EQ(*c.report, bench::gpufs_error::beyond_end, cache.read(g, c.group, 0, file_bytes - 3, 4, to));
  }
};

/// Each group keeps a page pinned while all of them read others, and looks at it then.
struct gpufs_pins_body {
  gpufs_reads_body reads;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    bench::gpufs_view const& cache = reads.cache;
    const u64 pages = reads.file_bytes / cache.page_bytes();
    const u64 page = c.group % pages;
    const bench::gpufs_page held = cache.pin(g, c.group, 1, page);
    if (!PENSTOCK_CHECK_EQ(*c.report, bench::gpufs_error::none, held.error)) return;
    reads(g, c);
    std::byte const* const bytes = cache.bytes_of(held.frame);
    for (u64 i = index_in(g); i < cache.page_bytes(); i += size(g)) {
      const u8 found = load_piece(reinterpret_cast<u8 const*>(bytes) + i);
      if (!PENSTOCK_CHECK_EQ(*c.report, gpufs_byte(1, page * cache.page_bytes() + i), found)) break;
    }
    cache.unpin(g, held);
  }
};

}  // namespace penstock::test
