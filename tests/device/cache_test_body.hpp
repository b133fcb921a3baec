// What the cache promises any group: a read gives the bytes that lie there, however often frames change hands meanwhile; a
// pinned line keeps its bytes; in the end nobody holds anything.
#pragma once

#include "penstock/array/array_ref.hpp"
#include "penstock/array/pinned_line.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Random reads through operator[], runs through array_ref, single pieces of other widths, and pins held over other reads.
struct cached_reads_body {
  array_view<u64> words;
  array_view<u8> bytes;  ///< the same dataset
  u32 rounds = 0;
  u32 hot = 0;         ///< > 0: all reads fall on this many words, far apart
  bool pins = false;   ///< the cache has room for a pinned line per thread beside what it needs
  bool ahead = false;  ///< prefetches what is read next

  PENSTOCK_FN u64 pick(test_context const& c, u64 round) const {
    const u64 draw = random_word(c.seed(), c.thread, round);
    return hot == 0 ? draw % words.size() : draw % hot * (words.size() / hot);
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    array_ref<u64> follow(words);
    for (u32 round = 0; round < rounds; ++round) {
      const u64 i = pick(c, round);
      if (ahead) words.prefetch(g, true, pick(c, round + 1));
      PENSTOCK_CHECK_EQ(*c.report, stamp(i), words[i]);
      PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(stamp(i) >> 24), bytes[8 * i + 3]);
      for (u64 k = i; k < i + 70 && k < words.size(); k += 23) PENSTOCK_CHECK_EQ(*c.report, stamp(k), follow[k]);
      const bool want = i % 3 != 0;
      PENSTOCK_CHECK_EQ(*c.report, want ? stamp(i) : 0, follow.read(g, want, i));
      if (pins && round % 4 == 0) hold(g, c, i);
      g.sync();
    }
  }

  // The group's first line, held by all while every lane churns the cache.
  template <thread_group G>
  PENSTOCK_FN void hold(G const& g, test_context const& c, u64 i) const {
    const u64 first = from_leader(g, i);
    const pinned_line<G> line = pin(g, words, first);
    if (!PENSTOCK_CHECK_EQ(*c.report, status{}, line.error())) return;
    const u64 at = words.reader().within(words.address_of(first));
    for (u32 k = 0; k < 8; ++k) {
      PENSTOCK_CHECK_EQ(*c.report, stamp(first), line.template load<u64>(at));
      const u64 other = pick(c, 1000 + k);
      PENSTOCK_CHECK_EQ(*c.report, stamp(other), words[other]);
    }
    PENSTOCK_CHECK_EQ(*c.report, stamp(first), line.template load<u64>(at));
  }
};

/// Every lane names a line of its own and holds them all together.
struct pins_together_body {
  array_view<u64> words;
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 i = random_word(c.seed(), c.thread, round) % words.size();
      const pinned_line<G> line = pin(g, words, i);
      if (PENSTOCK_CHECK_EQ(*c.report, status{}, line.error())) {
        PENSTOCK_CHECK_EQ(*c.report, stamp(i), line.template load<u64>(words.reader().within(words.address_of(i))));
      }
    }
  }
};

}  // namespace penstock::test
