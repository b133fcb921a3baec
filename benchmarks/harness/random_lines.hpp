// Random lines of a file through array_view: each item of the grid is one line, in the order of a bijection, asked for `ahead`
// items early. Every word of the file tells where it lies, so that what is read can be checked.
#pragma once

#include "penstock/array/array_ref.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::benchmarks {

PENSTOCK_FN inline u64 stamp(u64 word) { return (word ^ 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull; }

struct random_lines {
  array_view<u64> words;
  u64* wrong = nullptr;  ///< words that were not what they should be
  u64 lines = 0;         ///< a power of two
  u64 first_item = 0;    ///< so that no two runs ask for the same order
  u32 words_per_line = 0;
  u32 ahead = 0;       ///< lines in flight per group
  bool whole = false;  ///< check every word of the line, not one per lane

  PENSTOCK_FN u64 line_of(u64 item) const {
    // Odd multiplications and shifts: a bijection on the bits of `lines`, so no line comes twice in a turn.
    u64 x = item + first_item;
    x = (x * 0x9e3779b97f4a7c15ull) & (lines - 1);
    x ^= x >> 7;
    return (x * 0xd1342543de82ef95ull + first_item) & (lines - 1);
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    array_ref<u64> follow(words);
    u64 bad = 0;
    for (u32 k = 0; k < ahead; ++k) ask(g, range, range.first + k * range.step);
    for (u64 item = range.first; item < range.last; item += range.step) {
      if (ahead != 0) ask(g, range, item + ahead * range.step);
      const u64 first = line_of(item) * words_per_line;
      const u32 last = whole ? words_per_line : size(g);
      for (u32 w = index_in(g); w < last; w += size(g)) bad += follow.read(g, true, first + w) != stamp(first + w) ? 1 : 0;
    }
    if (bad != 0) device_ref<u64>(*wrong).fetch_add(bad, relaxed);
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, grid_range range, u64 item) const {
    const bool mine = is_leader(g) && item < range.last;
    words.prefetch(g, mine, mine ? line_of(item) * words_per_line : 0);
  }
};

// One per executor, in the translation unit that can compile it.
void run_random_lines_cpu(executor& on, u64 items, random_lines const& body);
void run_random_lines_cuda(executor& on, u64 items, random_lines const& body, u64 most_groups);

}  // namespace penstock::benchmarks
