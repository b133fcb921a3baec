// A query of each group: its shortlist, the distances of what is on it, and the nearest.
#pragma once

#include "libs/lsh/lsh_kernels.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

struct lsh_body {
  lsh::touch_buckets<lsh::file_entries> touch;
  lsh::make_shortlists<lsh::file_entries> shortlists;
  lsh::compare_records<lsh::file_records> compare;
  lsh::select_nearest select;
  u32* ran;  ///< [groups]

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 k = c.group;
    touch(g, grid_range{k * touch.tables, (k + 1) * touch.tables, 1});
    shortlists(g, grid_range{k, k + 1, 1});
    converge_after_call(g);
    for (u64 item = k; item < compare.items(); item += compare.query_count) compare(g, grid_range{item, item + 1, 1});
    converge_after_call(g);
    select(g, grid_range{k, k + 1, 1});
    if (is_leader(g)) ran[k] = 1;
  }
};

}  // namespace penstock::test
