// Counts keys into bins of an array in a file, by atomics from every thread; both files may be larger than memory.
//
//   histogram KEYS.npy COUNTS.npy        uint64 each; counts are added to those that the second file has
//
// COUNTS.npy is written through a cache: lines that changed are written back when they are evicted, and by flush().
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <cstdio>
#include <exception>

using penstock::u64;

struct count_keys {
  penstock::array_view<u64> keys;
  penstock::writable_view<u64> counts;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, penstock::grid_range range) const {
    for (u64 i = range.first; i < range.last; i += range.step) counts.fetch_add(keys[i] % counts.size(), 1);
  }
};

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: histogram KEYS.npy COUNTS.npy\n");
    return 2;
  }
  try {
    auto on = penstock::open_executor("auto");
    penstock::stored_array keys(*on, words[1], {.cache = {.bytes = 16 << 20}});
    penstock::stored_array counts(*on, words[2], {.cache = {.bytes = 16 << 20}, .writable = true});
    const u64 items = counts.size() == 0 ? 0 : keys.size();
    penstock::launch<1>(*on, items, count_keys{keys.view<u64>(), counts.writable<u64>()});
    keys.cache().check_faults();
    counts.cache().check_faults();
    counts.flush();
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "histogram: %s\n", problem.what());
    return 2;
  }
}
