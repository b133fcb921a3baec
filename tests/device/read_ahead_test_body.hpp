// What reading ahead promises any group that goes from line to line: the bytes that lie there, each line brought in once.
#pragma once

#include "penstock/array/array_view.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// All threads together read all words in their order.
struct reads_in_order_body {
  array_view<u64> words;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, test_context const& c) const {
    for (u64 i = c.thread; i < words.size(); i += c.run.threads) PENSTOCK_CHECK_EQ(*c.report, stamp(i), words[i]);
  }
};

}  // namespace penstock::test
