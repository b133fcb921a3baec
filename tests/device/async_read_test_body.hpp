// What read_async promises any group: each token gives its element, however often frames change hands between asking and
// taking; a token that nobody takes leaves nothing behind.
#pragma once

#include "penstock/array/array_view.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Several tokens on their way in each lane, with other reads in between; taken alone and together, in any order, or dropped.
struct async_reads_body {
  array_view<u64> words;
  array_view<u8> bytes;  ///< the same dataset
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      u64 at[6];
      for (u32 k = 0; k < 6; ++k) at[k] = random_word(c.seed(), c.thread, 6 * round + k) % words.size();
      const bool want = at[3] % 3 != 0;
      auto first = words.read_async(at[0]);
      auto narrow = bytes.read_async(8 * at[1] + 5);
      auto together = words.read_async(g, true, at[2]);
      auto some = words.read_async(g, want, at[3]);
      PENSTOCK_CHECK_EQ(*c.report, stamp(at[4]), words[at[4]]);
      (void)words.read_async(at[5]);
      ask_and_read_span(g, c, round);
      if (at[4] % 2 == 0) PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(stamp(at[1]) >> 40), narrow.wait());
      PENSTOCK_CHECK_EQ(*c.report, want ? stamp(at[3]) : 0, some.wait(g));
      PENSTOCK_CHECK_EQ(*c.report, stamp(at[2]), together.wait(g));
      PENSTOCK_CHECK_EQ(*c.report, stamp(at[0]), first.wait());
      PENSTOCK_CHECK_EQ(*c.report, stamp(at[0]), first.wait());
      PENSTOCK_CHECK_EQ(*c.report, true, first.here());
      g.sync();
    }
  }

  template <thread_group G>
  PENSTOCK_FN void ask_and_read_span(G const& g, test_context const& c, u32 round) const {
    const u64 draw = from_leader(g, random_word(c.seed(), c.thread, 1000 + round));
    const u64 begin = draw % words.size();
    const u64 most = words.size() - begin;
    const u64 count = most < 300 ? most : 300;
    words.ask_span(g, begin, count);
    words.read_span(g, begin, count, [&](u64 i, u64 v) { PENSTOCK_CHECK_EQ(*c.report, stamp(i), v); });
  }
};

}  // namespace penstock::test
