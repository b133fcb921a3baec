// What the cache promises who writes: an element holds what was stored last, its neighbours keep their bytes, and a reader sees
// values that somebody stored, never older ones than before. The media must hold it all after a flush.
#pragma once

#include "penstock/array/writable_view.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// Element i after its n-th write; before the first it holds its stamp.
PENSTOCK_FN inline u64 written(u64 i, u64 n) { return n == 0 ? stamp(i) : i << 32 | n; }

/// Every element has one thread that writes it: all threads take turns along the array, so each line belongs to many.
struct written_elements_body {
  writable_view<u64> words;
  u32* last = nullptr;  ///< [words] how often each was written; its writer's alone
  u32 rounds = 0;
  u64 span = 0;  ///< > 0: only the first elements, so that few lines are fought for

  PENSTOCK_FN u64 elements() const { return span != 0 ? span : words.size(); }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 own = elements() / c.run.threads;
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), c.thread, round);
      const bool want = own != 0 && draw % 5 != 0;
      const u64 i = own == 0 ? 0 : draw / 8 % own * c.run.threads + c.thread;
      const u64 n = want ? last[i] + 1 : 0;
      if (random_word(c.seed(), c.group, round) % 3 == 0) {
        if (want) words.write(i, written(i, n));
      } else {
        words.write(g, want, i, written(i, n));
      }
      if (want) last[i] = static_cast<u32>(n);
      if (want) PENSTOCK_CHECK_EQ(*c.report, written(i, n), words[i]);
      const u64 other = draw / 64 % elements();
      const u64 first = words[other], second = words[other];
      PENSTOCK_CHECK(*c.report, plausible(other, first) && plausible(other, second) && age(other, first) <= age(other, second));
      g.sync();
    }
  }

  PENSTOCK_FN static u64 age(u64 i, u64 value) { return value == stamp(i) ? 0 : value & 0xffffffffu; }
  PENSTOCK_FN static bool plausible(u64 i, u64 value) { return value == stamp(i) || value >> 32 == i; }
};

/// Everyone adds to, lowers and increments the same few elements, of all types.
struct counted_elements_body {
  writable_view<u64> words;
  writable_view<u32> halves;  ///< the same bytes
  writable_view<float> floats;
  writable_view<double> doubles;
  writable_view<int> ints;
  u32 rounds = 0;
  static constexpr u64 apart = 64;  ///< words between the elements: a line each

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      words.fetch_add(0, 1);
      words.fetch_add(g, true, apart, 3);
      halves.fetch_add(g, true, 4 * apart, 1u);
      floats.fetch_add(g, true, 6 * apart, 1.0f);
      doubles.fetch_add(4 * apart, 0.5);
      const u64 draw = random_word(c.seed(), c.thread, round) | 1;
      words.fetch_min(g, true, 5 * apart, draw);
      ints.fetch_min(g, true, 12 * apart, -static_cast<int>(c.thread) - 1);
      u64 seen = words[7 * apart];
      while (!words.compare_exchange(7 * apart, seen, seen + 1)) {}
      g.sync();
    }
  }
};

/// Threads that change, read and try elements as it comes to each, until one after the other has done all of its own: the lanes
/// of a warp part, meet at one call or at different ones, and leave.
struct parted_lanes_body {
  writable_view<u64> words;
  u32* added = nullptr;  ///< [words] how often
  u32 rounds = 0;
  bool names = false;  ///< some of them by a group of the lanes that are here, which parts at its hits

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 own_rounds = random_word(c.seed(), 7000, c.thread) % (4 * u64{rounds}) + 1;
    for (u64 round = 0; round < own_rounds; ++round) {
      const u64 draw = random_word(c.seed(), 8000 + c.thread, round);
      const u64 i = draw / 8 % words.size();
      if (draw % 8 < 4) {
        words.fetch_add(i, step(i));
        device_ref<u32>(added[i]).fetch_add(1, relaxed);
      } else if (draw % 8 == 4) {
        PENSTOCK_CHECK(*c.report, is_sum(i, words[i]));
      } else if (draw % 8 == 5) {
        const u64 other = draw / 512 % words.size();
        auto first = words.read_async(i), second = words.read_async(other);
        PENSTOCK_CHECK(*c.report, is_sum(i, first.wait()));
        PENSTOCK_CHECK(*c.report, is_sum(other, second.wait()));
      } else {
        u64 found = 0;
        const bool named = names && draw % 8 == 7;
        const status outcome = named ? words.try_read(this_group(), true, i, found) : words.try_read(i, found);
        PENSTOCK_CHECK_EQ(*c.report, status{}, outcome);
        PENSTOCK_CHECK(*c.report, is_sum(i, found));
      }
    }
    g.sync();
  }

  PENSTOCK_FN static u64 step(u64 i) { return 2 * i + 3; }  // so that an element of another place is found out
  PENSTOCK_FN static bool is_sum(u64 i, u64 value) {
    const u64 more = value - stamp(i);
    return more % step(i) == 0 && more / step(i) < 1u << 24;
  }
  static u64 expected(u64 i, u64 times) { return stamp(i) + times * step(i); }
};

/// Each group writes runs of elements of its own part of the array, of any length from any element on, then reads them.
struct written_spans_body {
  writable_view<u64> words;
  writable_view<u8> bytes;  ///< the same dataset
  u32* last = nullptr;      ///< [words]
  u32 rounds = 0;
  u64 longest = 300;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 part = words.size() / c.run.groups;
    const u64 begin = part * c.group;
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), 1000 + c.group, round);
      const u64 first = begin + draw % part;
      const u64 left = begin + part - first;
      const u64 count = draw / 4096 % (longest < left ? longest : left) + 1;
      const u32 n = round + 1;
      const status outcome = words.write_span(g, first, count, [n](u64 i) { return written(i, n); });
      PENSTOCK_CHECK_EQ(*c.report, status{}, outcome);
      for (u64 k = index_in(g); k < count; k += size(g)) last[first + k] = n;
      g.sync();
      for (u64 k = index_in(g); k < count; k += 7 * size(g))
        PENSTOCK_CHECK_EQ(*c.report, written(first + k, n), words[first + k]);
      if (draw % 4 == 0) hold(g, c, first, n);
      g.sync();
    }
  }

  // The group's first line under a write pin: one word of it, and the same word again byte by byte.
  template <thread_group G>
  PENSTOCK_FN void hold(G const& g, test_context const& c, u64 i, u32 n) const {
    {
      writable_line<G> line = pin_to_write(g, words, i);
      if (!PENSTOCK_CHECK_EQ(*c.report, status{}, line.error())) return;
      const u64 at = words.reader().within(words.address_of(i));
      if (is_leader(g)) line.template store<u64>(at, written(i, n));
      PENSTOCK_CHECK(*c.report, !is_leader(g) || line.template load<u64>(at) == written(i, n));
    }
    for (u32 b = index_in(g); b < 8; b += size(g)) bytes.write(8 * i + b, static_cast<u8>(written(i, n) >> 8 * b));
    g.sync();
    PENSTOCK_CHECK_EQ(*c.report, written(i, n), words[i]);
  }
};

/// Each lane writes runs of its own part of the array, all of a group's together.
struct written_batches_body {
  writable_view<u64> words;
  u32* last = nullptr;  ///< [words]
  u32 rounds = 0;
  u64 longest = 300;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const u64 part = words.size() / c.run.groups / size(g);
    const u64 begin = words.size() / c.run.groups * c.group + part * index_in(g);
    for (u32 round = 0; part != 0 && round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), 3000 + c.group, round);
      const u64 count = draw % (longest < part ? longest : part) + 1;
      const u64 own = random_word(c.seed(), c.thread, round);
      const u64 first = begin + own % (part - count + 1);
      const bool want = own >> 32 & 3;
      const u32 n = round + 1;
      const status outcome = words.write_spans(g, want, first, count, [&](u32 k, u64 j) {
        const u64 of_k = words.size() / c.run.groups * c.group + part * k;
        return written(of_k + random_word(c.seed(), thread_of(g, c, k), round) % (part - count + 1) + j, n);
      });
      PENSTOCK_CHECK_EQ(*c.report, status{}, outcome);
      for (u64 k = 0; want && k < count; ++k) last[first + k] = n;
      if (want) PENSTOCK_CHECK_EQ(*c.report, written(first + count - 1, n), words[first + count - 1]);
      g.sync();
    }
  }

  /// The number of the thread that is lane k of the group.
  template <thread_group G>
  PENSTOCK_FN static u32 thread_of(G const& g, test_context const& c, u32 k) {
    return c.thread - g.rank() + nth(g.members(), k);
  }
};

/// Lanes add to runs of elements anywhere, all of a group's together: some overlap, some lanes name the same run.
struct added_batches_body {
  writable_view<u64> words;
  u32* added = nullptr;  ///< [words] how often
  u32 rounds = 0;
  u64 longest = 300;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 count = random_word(c.seed(), 4000 + c.group, round) % (longest < words.size() ? longest : words.size()) + 1;
      const u64 draw = random_word(c.seed(), 5000 + c.thread / 2, round);
      const u64 first = draw % (round % 2 == 0 ? words.size() - count + 1 : 1);
      const bool want = random_word(c.seed(), 6000 + c.thread, round) % 4 != 0;
      // What is added follows from where it goes: a lane whose elements went to another's place would be found out.
      const status outcome = words.add_spans(g, want, first, count, [&](u32 k, u64 j) {
        const u64 of_k = random_word(c.seed(), 5000 + written_batches_body::thread_of(g, c, k) / 2, round);
        return scatter(of_k % (round % 2 == 0 ? words.size() - count + 1 : 1) + j);
      });
      PENSTOCK_CHECK_EQ(*c.report, status{}, outcome);
      for (u64 k = 0; want && k < count; ++k) device_ref<u32>(added[first + k]).fetch_add(1, relaxed);
      g.sync();
    }
  }

  static u64 expected(u64 i, u64 times) { return stamp(i) + times * scatter(i); }
};

/// Groups add to runs of elements anywhere, which overlap; every other time all to the same one.
struct added_spans_body {
  writable_view<u64> words;
  u32* added = nullptr;  ///< [words] how often
  u32 rounds = 0;
  u64 longest = 300;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), 2000 + c.group, round);
      const u64 first = round % 2 == 0 ? draw % words.size() : 0;
      const u64 left = words.size() - first;
      const u64 most = longest < left ? longest : left;
      const u64 count = round % 2 == 0 ? draw / 4096 % most + 1 : most;
      PENSTOCK_CHECK_EQ(*c.report, status{}, words.add_span(g, first, count, [](u64 i) { return scatter(i); }));
      for (u64 k = index_in(g); k < count; k += size(g)) device_ref<u32>(added[first + k]).fetch_add(1, relaxed);
      g.sync();
    }
  }

  static u64 expected(u64 i, u64 times) { return stamp(i) + times * scatter(i); }
};

}  // namespace penstock::test
