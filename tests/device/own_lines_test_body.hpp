// Caches through views of a program's own: with fills of its own, with another policy.
#pragma once

#include "penstock/array/cached_array.hpp"
#include "penstock/coalesce/own_fill.hpp"
#include "support/stamped_media.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

/// Word w of the dataset is stamp(w). A line that has word `bad` fails.
struct stamped_lines {
  u64 bad = ~0ull;
  u32* fills = nullptr;  ///< counts those of each thread that leads

  template <thread_group G>
  PENSTOCK_FN status operator()(G const& g, byte_offset first, frame_writer const& to) const {
    const u64 word = value(first) / sizeof(u64);
    if (is_leader(g)) device_ref<u32>(*fills).fetch_add(1, relaxed);
    // One thread of the group knows of it.
    if (bad - word < to.bytes / sizeof(u64)) return is_leader(g) ? make_status(failure::out_of_range) : status{};
    for (u32 k = index_in(g); k < to.pieces(); k += size(g)) to.store(k, {stamp(word + 2 * k), stamp(word + 2 * k + 1)});
    return {};
  }
};

/// Takes frames in turn.
struct turn_policy {
  u64* next = nullptr;
  u32 frames = 0;

  PENSTOCK_FN u32 candidate() const { return static_cast<u32>(device_ref<u64>(*next).fetch_add(1, relaxed)) % frames; }
  PENSTOCK_FN u64 search_limit() const { return frames; }
  PENSTOCK_FN static bool spares(u64&, u64) { return false; }
};

/// Random elements, by threads and by groups in which some lanes want none.
template <class Cache>
struct own_elements_body {
  cached_array<u64, Cache> words;
  u64 bad = ~0ull;  ///< of this line's words zeros come
  u32 rounds = 0;

  PENSTOCK_FN u64 expected(u64 w) const { return w / 64 == bad / 64 ? 0 : stamp(w); }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), c.thread, round);
      const u64 w = draw % words.size(), beside = words.size() - 1 - w;
      const bool want = (draw >> 40 & 1) != 0;
      PENSTOCK_CHECK_EQ(*c.report, expected(w), words[w]);
      PENSTOCK_CHECK_EQ(*c.report, want ? expected(beside) : 0, words.read(g, want, want ? beside : 0));
    }
  }
};

}  // namespace penstock::test
