// Reads through a cache that does without some of what it has: the bytes are the same, what they cost is known.
#pragma once

#include "penstock/array/array_view.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// In each round one element that every thread reads, one of its own, and one that it asked for before.
struct ablated_reads_body {
  array_view<u64> words;
  u32 rounds = 0;

  static constexpr u32 accesses_in_round = 3;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 common = scatter(round) % words.size();
      const u64 own = random_word(c.seed(), c.thread, round) % words.size();
      const u64 asked = random_word(c.seed(), c.thread, 1000 + round) % words.size();
      auto token = words.read_async(asked);
      words.prefetch(own);
      PENSTOCK_CHECK_EQ(*c.report, stamp(common), words[common]);
      PENSTOCK_CHECK_EQ(*c.report, stamp(own), words[own]);
      PENSTOCK_CHECK_EQ(*c.report, stamp(asked), token.wait());
    }
  }
};

}  // namespace penstock::test
