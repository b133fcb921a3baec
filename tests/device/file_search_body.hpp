// A search of one file by each group: the matches are those that a plain loop finds.
#pragma once

#include "libs/files/search_kernels.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

/// The files that groups search in turn, as the host made them.
struct file_search_body {
  files::search_parts search;
  u32* ran;  ///< [groups]

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    search(g, grid_range{c.group, u64{c.group} + 1, 1});
    if (!is_leader(g)) return;  // the result is the leader's
    ran[c.group] = 1;
    PENSTOCK_CHECK_EQ(*c.report, 0u, search.results[c.group].error);
  }
};

}  // namespace penstock::test
