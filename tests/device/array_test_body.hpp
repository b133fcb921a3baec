// Arrays over a cache against the same array in memory: elements of every width, also ones that straddle lines; references that
// follow their index; lines that are held.
#pragma once

#include "penstock/array/array_ref.hpp"
#include "penstock/array/pinned_line.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

struct alignas(16) wide_element {
  u64 low, high;
};
struct element12 {
  u32 a, b, c;
};
struct element24 {
  u64 a, b, c;
};
struct element16_of_words {
  u64 a, b;
};

PENSTOCK_FN inline u64 element_word(u8 v) { return v; }
PENSTOCK_FN inline u64 element_word(u16 v) { return v; }
PENSTOCK_FN inline u64 element_word(u32 v) { return v; }
PENSTOCK_FN inline u64 element_word(u64 v) { return v; }
PENSTOCK_FN inline u64 element_word(wide_element v) { return scatter(v.low) ^ v.high; }
PENSTOCK_FN inline u64 element_word(element12 v) { return scatter(scatter(v.a) ^ v.b) ^ v.c; }
PENSTOCK_FN inline u64 element_word(element24 v) { return scatter(scatter(v.a) ^ v.b) ^ v.c; }
PENSTOCK_FN inline u64 element_word(element16_of_words v) { return scatter(v.a) ^ v.b; }

/// operator[] of both views, anywhere, at the ends, and prefetched.
template <class T>
struct same_elements_body {
  array_view<T> resident;
  array_view<T> stored;
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    PENSTOCK_CHECK_EQ(*c.report, resident.size(), stored.size());
    const u64 last = stored.size() - 1;
    for (u32 round = 0; round < rounds; ++round) {
      const u64 i = random_word(c.seed(), c.thread, round) % stored.size();
      stored.prefetch(g, round % 2 == 0, i);
      PENSTOCK_UNROLL_BY(1)
      for (u32 place = 0; place < 3; ++place) {
        const u64 at = place == 0 ? i : place == 1 ? last : 0;
        PENSTOCK_CHECK_EQ(*c.report, element_word(resident[at]), element_word(stored[at]));
      }
    }
  }
};

/// Elements with a status each, by threads and by groups in which some lanes want none; beyond the end there is none.
template <class T>
struct told_elements_body {
  array_view<T> resident;
  array_view<T> stored;
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 elements = stored.size();
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), c.thread, round);
      const u64 i = draw % elements;
      T alone{}, beside{}, beyond = resident[0];
      PENSTOCK_CHECK_EQ(*c.report, status{}, stored.try_read(i, alone));
      PENSTOCK_CHECK_EQ(*c.report, element_word(resident[i]), element_word(alone));
      const bool want = draw >> 32 & 1, inside = draw >> 33 & 1;
      const status told = stored.try_read(g, want, inside ? elements - 1 - i : elements + i, beside);
      PENSTOCK_CHECK_EQ(*c.report, want && !inside ? make_status(failure::out_of_range) : status{}, told);
      PENSTOCK_CHECK_EQ(*c.report, element_word(want && inside ? resident[elements - 1 - i] : T{}), element_word(beside));
      PENSTOCK_CHECK_EQ(*c.report, make_status(failure::out_of_range), resident.try_read(elements, beyond));
      PENSTOCK_CHECK_EQ(*c.report, element_word(resident[0]), element_word(beyond));
      PENSTOCK_CHECK_EQ(*c.report, status{}, resident.try_read(i, beyond));
      PENSTOCK_CHECK_EQ(*c.report, element_word(alone), element_word(beyond));
    }
  }
};

/// Each thread walks a piece of the array through one array_ref, up and down.
template <class T>
struct follow_body {
  array_view<T> resident;
  array_view<T> stored;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, test_context const& c) const {
    const u64 length = stored.size() / c.run.threads;
    const u64 first = c.thread * length;
    array_ref<T> from_memory(resident);
    array_ref<T> follow(stored);
    for (u64 k = 0; k < length; ++k)
      PENSTOCK_CHECK_EQ(*c.report, element_word(from_memory[first + k]), element_word(follow[first + k]));
    for (u64 k = length; k-- > 0;)
      PENSTOCK_CHECK_EQ(*c.report, element_word(resident[first + k]), element_word(follow[first + k]));
  }
};

/// Lanes read runs of their own of two arrays at once, some of them one or none, some over the end of the shorter array.
template <class T, u32 Length = sizeof(T) < 8 ? 16 / sizeof(T) : 4>
struct runs_body {
  array_view<T> resident;
  array_view<T> stored;
  array_view<u64> words_resident;
  array_view<u64> words_stored;
  u32 rounds = 0;

  static constexpr u32 length = Length;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 runs = stored.size() / length + 1;  // the last one has not all of its elements
    array_ref<T> from_memory(resident), follow(stored);
    array_ref<u64> words_from_memory(words_resident), follow_words(words_stored);
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), c.thread, round);
      const u64 first = (round % 3 == 0 ? runs - 1 : draw % runs) * length;
      const u64 stride = round % 2 == 0 ? length : (draw >> 20) % 64 * length;
      const bool want[2] = {(draw >> 40 & 3) != 0, (draw >> 42 & 3) != 0};
      T beside[2][length], here[2][length];
      u64 words_beside[2][length], words_here[2][length];
      read_runs<true>(g, want, first, stride, runs_of(from_memory, beside), runs_of(words_from_memory, words_beside));
      read_runs<false>(g, want, first, stride, runs_of(follow, here), runs_of(follow_words, words_here));
      for (u32 r = 0; r < 2; ++r) {
        compare(c, resident, want[r], first + r * stride, here[r], beside[r]);
        compare(c, words_resident, want[r], first + r * stride, words_here[r], words_beside[r]);
      }
    }
  }

 private:
  template <class Of>
  PENSTOCK_FN static void compare(test_context const& c, array_view<Of> const& from, bool want, u64 first,
                                  Of const (&here)[length], Of const (&beside)[length]) {
    for (u32 k = 0; k < length; ++k) {
      const Of right = want && first + k < from.size() ? from[first + k] : Of{};
      PENSTOCK_CHECK_EQ(*c.report, element_word(right), element_word(here[k]));
      PENSTOCK_CHECK_EQ(*c.report, element_word(right), element_word(beside[k]));
    }
  }
};

/// Groups read runs of every length and alignment, over lines that are there and lines that are not.
template <class T>
struct spans_body {
  array_view<T> resident;
  array_view<T> stored;
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      // One draw for the whole group.
      const u64 draw = from_leader(g, random_word(c.seed(), c.thread, round));
      const u64 first = draw % stored.size();
      const u64 most = stored.size() - first;
      const u64 count = round % 4 == 0 ? most : draw / stored.size() % (most < 700 ? most : 700);
      check_span<read_order::sound>(g, c, stored, first, count);
      check_span<read_order::data>(g, c, stored, first, count);
      check_span<read_order::sound>(g, c, resident, first, count);
    }
  }

  // Each element once, and right: the number and the sum of those that were seen.
  template <read_order Order, thread_group G>
  PENSTOCK_FN void check_span(G const& g, test_context const& c, array_view<T> const& from, u64 first, u64 count) const {
    u64 seen = 0, sum = 0, wanted = 0;
    from.template read_span<Order>(g, first, count, [&](u64 i, T v) {
      PENSTOCK_CHECK_EQ(*c.report, element_word(resident[i]), element_word(v));
      PENSTOCK_CHECK_EQ(*c.report, true, i >= first && i - first < count);
      ++seen;
      sum += scatter(i);
    });
    for (u64 i = first + index_in(g); i < first + count; i += size(g)) wanted += scatter(i);
    PENSTOCK_CHECK_EQ(*c.report, count, total(g, seen));
    PENSTOCK_CHECK_EQ(*c.report, total(g, wanted), total(g, sum));
  }

  template <thread_group G>
  PENSTOCK_FN static u64 total(G const& g, u64 mine) {
    u64 sum = 0;
    for (u32 k = 0; k < size(g); ++k) sum += g.shfl(mine, nth(g.members(), k));
    return sum;
  }
};

/// A group walks all lines and holds each while it looks at every word of it.
struct held_lines_body {
  array_view<u64> resident;
  array_view<u64> stored;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 line_words = (1ull << stored.reader().line_shift) / sizeof(u64);
    access_tally tally;
    for (u64 first = c.group % 3 * line_words; first < stored.size(); first += 3 * line_words) {
      if (!look(g, c, pin(g, stored, first), first, line_words)) return;
      if (!look(g, c, pin<read_order::data>(g, stored, first, tally), first, line_words)) return;
    }
    tally.add_to(stored.reader().counters, 0);
  }

  // Word by word, and 16 bytes at once.
  template <thread_group G, class Line>
  PENSTOCK_FN bool look(G const& g, test_context const& c, Line const& line, u64 first, u64 line_words) const {
    if (!PENSTOCK_CHECK_EQ(*c.report, status{}, line.error())) return false;
    const u64 words = stored.size() - first < line_words ? stored.size() - first : line_words;
    for (u64 k = index_in(g); k < words; k += size(g)) {
      PENSTOCK_CHECK_EQ(*c.report, resident[first + k], line.template load<u64>(8 * k));
    }
    u64 seen = 0;
    line.read_pieces(0, static_cast<u32>(words / 2), [&](u32 k, piece16 piece) {
      PENSTOCK_CHECK_EQ(*c.report, resident[first + 2 * k], piece.low);
      PENSTOCK_CHECK_EQ(*c.report, resident[first + 2 * k + 1], piece.high);
      ++seen;
    });
    u64 wanted = 0;
    for (u64 k = index_in(g); k < words / 2; k += size(g)) ++wanted;
    PENSTOCK_CHECK_EQ(*c.report, wanted, seen);
    return true;
  }
};

}  // namespace penstock::test
