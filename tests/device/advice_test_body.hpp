// Arrays that share a cache, advised differently: whoever reads gets the bytes that lie there.
#pragma once

#include "penstock/array/array_view.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Every thread reads the few lines of one array again and again while a long one passes by.
struct passing_stream_body {
  array_view<u64> again;
  array_view<u64> once;
  u64 line_words = 0;
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      for (u64 k = 0; k < 8; ++k) {
        const u64 i = random_word(c.seed(), c.thread, 8 * round + k);
        PENSTOCK_CHECK_EQ(*c.report, stamp(i % again.size()), again[i % again.size()]);
        const u64 next = ((c.thread * rounds + round) * 8 + k) * line_words % once.size();
        PENSTOCK_CHECK_EQ(*c.report, stamp(next), once[next]);
      }
    }
  }
};

}  // namespace penstock::test
