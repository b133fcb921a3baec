// The cache on its own: no file, no controller. Its lines are computed by the threads that miss them, once.
//
//   own_cache ELEMENTS     prints the sum of a random sample of a table, and how many lines of it were computed
//
// Element i of the table says after how many steps the Collatz sequence of i + 1 comes to 1. What a fill does is its own
// affair: it decodes, computes, or copies from where the library does not look.
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

using namespace penstock;

struct collatz_steps {
  PENSTOCK_FN static u32 of(u64 n) {
    u32 steps = 0;
    for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    return steps;
  }

  /// All threads of the group that misses come here with the line that begins at byte `first`.
  template <thread_group G>
  PENSTOCK_FN status operator()(G const& g, byte_offset first, frame_writer const& to) const {
    for (u32 k = index_in(g); k < to.pieces(); k += size(g)) {
      const u64 n = value(first) / sizeof(u32) + 4 * k + 1;  // a piece has four elements
      to.store(k, {of(n) | u64{of(n + 1)} << 32, of(n + 2) | u64{of(n + 3)} << 32});
    }
    return {};  // any other status fails the line, and the reads that want it
  }
};

using table_view = filled_cache_view<collatz_steps>;

struct sum_sample {
  cached_array<u32, table_view> table;
  u64* sum;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, grid_range range) const {
    u64 mine = 0;
    for (u64 i = range.first; i < range.last; i += range.step) mine += table[i * 2654435761 % table.size()];
    device_ref<u64>(*sum).fetch_add(mine, relaxed);
  }
};

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: own_cache ELEMENTS\n"), 2;
  try {
    auto on = open_executor("auto");
    const u64 elements = std::strtoull(words[1], nullptr, 10);
    dataset_spec table{"the table", elements * sizeof(u32), {}};
    table.own_fills = true;
    line_cache cache(*on, {table}, {.bytes = 64 << 20});
    const table_view view{cache.view(), {}};
    buffer<table_view> place(on->memory(), memory_kind::local, 1);  // where kernels find it
    place.write({&view, 1});
    const buffer<u64> sum(on->memory(), memory_kind::local, 1);
    u64 total = 0;
    // One block to a multiprocessor: a kernel with misses of its own needs more registers than 64 a thread.
    launch<1, 1>(*on, elements == 0 ? 0 : 1 << 17,
                 sum_sample{cache.array_through<u32>(place.data(), 0, 0, elements), sum.data()});
    cache.check_faults();
    sum.read({&total, 1});
    std::printf("%llu\n%llu\n", static_cast<unsigned long long>(total), static_cast<unsigned long long>(cache.stats(0).fills));
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "own_cache: %s\n", problem.what());
    return 2;
  }
}
