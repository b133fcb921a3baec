// The cache's steps taken by hand, and by threads without any queue between them, where a race is a few instructions wide.
#include "penstock/array/row_reader.hpp"
#include "support/bare_cache.hpp"
#include "support/run_everywhere.hpp"
#include "support/single_step.hpp"

#include <functional>

namespace penstock::test {
namespace {

struct bare_clock_cache : bare_cache<> {
  bare_clock_cache(u32 frames, u64 lines) : bare_cache(frames, lines, {&hand, frames}) {}
  u64 hand = 0;
};

/// One set, whose ways but `free` are taken for good: what is left is a cache of `free` frames.
struct bare_set_cache : bare_cache<> {
  bare_set_cache(u32 free, u64 lines) : bare_cache(set_ways, lines, {}, 1) {
    for (u32 w = free; w < set_ways; ++w) view().directory.entries[1 + w] = entry::one_pin;
  }
};

template <class Cache>
class validated_read : public testing::Test {};
template <class Cache>
class line_cache_view_test : public testing::Test {};
using bare_caches = testing::Types<bare_clock_cache, bare_set_cache>;
TYPED_TEST_SUITE(validated_read, bare_caches);
TYPED_TEST_SUITE(line_cache_view_test, bare_caches);

// A reader stops between R1 and R4 while one frame goes from line to line and back.
TYPED_TEST(validated_read, notices_every_refill_of_the_line_it_began_with) {
  TypeParam cache(1, 2);
  const line_reader reader = cache.reader();
  ASSERT_TRUE(cache.bring(0));
  cache.reference(0);
  hit_line r1{};
  u64 read = 0;
  ASSERT_TRUE(reader.find(0, r1));
  ASSERT_TRUE(reader.try_read(r1, 8, read));
  EXPECT_EQ(stamp(1), read);
  for (u32 refill = 1; refill <= 300; ++refill) {
    ASSERT_TRUE(cache.bring(1));
    // R2 sees the other line's bytes; R4 comes now, or after the line's return.
    ASSERT_TRUE(cache.holds_word(1, 1));
    EXPECT_FALSE(reader.try_read(r1, 8, read)) << "while line 1 has the frame, refill " << refill;
    ASSERT_TRUE(cache.bring(0));
    EXPECT_FALSE(entry::same(r1.word, cache.load(0))) << "refill " << refill;
    EXPECT_FALSE(reader.try_read(r1, 8, read)) << "refill " << refill;
  }
}

TYPED_TEST(validated_read, does_not_mind_pins_and_flags_that_come_and_go) {
  TypeParam cache(2, 2);
  const line_reader reader = cache.reader();
  ASSERT_TRUE(cache.bring(0));
  for (const u64 change : {entry::one_pin, entry::dirty_bit, entry::writing_bit, entry::referenced_bit}) {
    cache.reference(0);
    // The referenced bit is there, and goes; the others come.
    const u64 there = cache.load(0) & change;
    hit_line before{}, other{};
    EXPECT_TRUE(reader.find(0, before));
    cache.add(0, change - 2 * there);
    u64 read = 0;
    EXPECT_TRUE(reader.try_read(before, 16, read)) << "bit " << change << " changed";
    EXPECT_EQ(there == 0, reader.find(0, other)) << "an unreferenced line takes the slow way";
    cache.add(0, 2 * there - change);
    EXPECT_TRUE(reader.try_read(before, 16, read)) << "bit " << change << " changed back";
    EXPECT_EQ(stamp(2), read);
  }
}

TYPED_TEST(validated_read, does_not_begin_on_a_line_that_is_not_valid) {
  TypeParam cache(2, 2);
  const line_reader reader = cache.reader();
  hit_line other{};
  EXPECT_FALSE(reader.find(0, other));
  ASSERT_EQ(access_step::claimed, cache.look(0));
  EXPECT_FALSE(reader.find(0, other));
  cache.add(0, entry::referenced_bit);
  EXPECT_FALSE(reader.find(0, other));
  line_sink::finish(cache.target(cache.entry_of(0)), {status_domain::nvme, 0x281});
  EXPECT_EQ(line_state::failed, entry::state(cache.load(0)));
  EXPECT_FALSE(reader.find(0, other));
}

/// A lone thread that something happens to between what it reads and its second look at the entry.
struct disturbed_thread : lone_thread {
  std::function<void()> happens;
  void sync() const { happens(); }
};

TYPED_TEST(validated_read, of_a_row_is_undone_when_its_line_was_refilled_meanwhile) {
  TypeParam cache(1, 2);
  const array_view<u64> words(cache.reader(), 0, 2 * cache.line_words);
  for (const bool refilled : {false, true}) {
    ASSERT_TRUE(cache.bring(0));
    cache.reference(0);
    u64 copy = 77;
    const disturbed_thread thread{{}, [&] {
                                    if (refilled) {
                                      EXPECT_TRUE(cache.bring(1));
                                    }
                                  }};
    const wanted_row mine{true, 5, reinterpret_cast<u64>(&copy)};
    EXPECT_EQ(refilled, any(copy_rows_in_frames(thread, words, mine, 1)));
    EXPECT_EQ(refilled ? 77 : stamp(5), copy) << "nothing is stored of what may be another line's";
  }
}

// The clock has gone by since the line was used last: it is no hit for a thread alone, and asked for anew by nobody.
TYPED_TEST(validated_read, of_a_row_refers_to_a_line_that_the_clock_went_by) {
  TypeParam cache(1, 2);
  const array_view<u64> words(cache.reader(), 0, 2 * cache.line_words);
  ASSERT_TRUE(cache.bring(0));
  cache.add(0, (0 - (cache.load(0) & entry::referenced_bit)));
  u64 copy = 77;
  EXPECT_FALSE(any(copy_rows_in_frames(lone_thread(), words, {true, 9, reinterpret_cast<u64>(&copy)}, 1)));
  EXPECT_EQ(stamp(9), copy);
  EXPECT_NE(0u, cache.load(0) & entry::referenced_bit);
}

TYPED_TEST(line_cache_view_test, whoever_claims_holds_a_pin_at_once_and_a_prefetch_none) {
  TypeParam cache(2, 2);
  ASSERT_EQ(access_step::claimed, cache.look(0));
  EXPECT_EQ(1u, entry::pins(cache.load(0)));
  ASSERT_EQ(access_step::claimed, cache.look_ahead(1));
  EXPECT_EQ(0u, entry::pins(cache.load(1)));
  EXPECT_EQ(access_step::again, cache.look_ahead(1));
  EXPECT_EQ(access_step::filling, cache.look(1, true));
  EXPECT_EQ(access_step::filling, cache.look(1, false));
  EXPECT_EQ(2u, entry::pins(cache.load(1)));
}

TYPED_TEST(line_cache_view_test, counts_no_more_pins_than_the_limit) {
  TypeParam cache(1, 1);
  const u64 preset = entry::one_pin * (entry::most_pins - 2);
  for (const bool filled : {false, true}) {
    if (filled) {
      cache.fill(0);
    } else {
      ASSERT_EQ(access_step::claimed, cache.look(0));
    }
    cache.add(0, preset);
    for (const bool wide : {false, true}) {
      EXPECT_EQ(filled ? access_step::pinned : access_step::filling, cache.look(0, wide));
      EXPECT_EQ(access_step::pin_limit, cache.look(0, wide));
      EXPECT_EQ(access_step::pin_limit, cache.look(0, !wide));
      EXPECT_EQ(entry::most_pins, entry::pins(cache.load(0)));
      cache.unpin(0);
    }
    cache.add(0, 0 - preset);
    EXPECT_EQ(1u, entry::pins(cache.load(0)));
  }
}

TYPED_TEST(line_cache_view_test, a_claim_without_a_frame_leaves_nothing_behind) {
  TypeParam cache(2, 3);
  ASSERT_TRUE(cache.hold(0));
  ASSERT_TRUE(cache.hold(1));
  EXPECT_EQ(access_step::no_frame, cache.look(2));
  EXPECT_EQ(access_step::no_frame, cache.look_ahead(2));
  EXPECT_EQ(line_state::empty, entry::state(cache.load(2)));
  EXPECT_EQ(0u, entry::pins(cache.load(2)));
  cache.unpin(0);
  EXPECT_TRUE(cache.bring(2));
}

#define NEEDS_SINGLE_STEPS() \
  if (!can_single_step) GTEST_SKIP() << "stops between instructions: x86-64 without sanitizers only"

/// More instructions than any of these steps has.
constexpr u64 far_off = 20000;

// Between any two instructions of a pin another thread takes the line's frame away.
TYPED_TEST(line_cache_view_test, a_pin_notices_that_its_line_has_gone) {
  NEEDS_SINGLE_STEPS();
  for (const bool wide : {false, true}) {
    u64 at = 0;
    bool interrupted = true;
    for (; interrupted && at < far_off; ++at) {
      TypeParam cache(1, 2);
      ASSERT_TRUE(cache.bring(0));
      access_step step{};
      bool taken = false;
      interrupted = single_step::interrupt(
          at, [&] { step = cache.look(0, wide); }, [&] { taken = cache.look(1) == access_step::claimed; });
      const u64 e = cache.load(0);
      const bool pinned = step == access_step::pinned;
      const bool gone = step == access_step::again || step == access_step::no_frame;
      ASSERT_TRUE(pinned || (gone && taken)) << "instruction " << at;
      ASSERT_EQ(pinned ? 1u : 0u, entry::pins(e)) << "instruction " << at;
      ASSERT_TRUE(!pinned || (entry::state(e) == line_state::valid && cache.holds_word(0, 9))) << "instruction " << at;
    }
    EXPECT_GT(at, 10u);
    EXPECT_LT(at, far_off);
  }
}

// Between any two instructions of a completion a passer-by pins the line.
TYPED_TEST(line_cache_view_test, no_pin_is_lost_when_a_fill_ends) {
  NEEDS_SINGLE_STEPS();
  for (const status outcome : {status{}, make_status(failure::deadline)}) {
    u64 at = 0;
    bool interrupted = true;
    for (; interrupted && at < far_off; ++at) {
      TypeParam cache(1, 2);
      ASSERT_EQ(access_step::claimed, cache.look(0));
      const line_sink::target to = cache.target(cache.entry_of(0));
      interrupted = single_step::interrupt(at, [&] { line_sink::finish(to, outcome); }, [&] { cache.add(0, entry::one_pin); });
      ASSERT_EQ(interrupted ? 2u : 1u, entry::pins(cache.load(0))) << "instruction " << at;
      ASSERT_EQ(outcome.ok() ? line_state::valid : line_state::failed, entry::state(cache.load(0)));
    }
    EXPECT_GT(at, 4u);
    EXPECT_LT(at, far_off);
  }
}

// Between any two instructions of a search in a part of the frames another thread takes the last fresh one of that part.
TEST(take_frame, leaves_a_fresh_frame_beyond_its_part_to_others) {
  NEEDS_SINGLE_STEPS();
  u64 at = 0;
  bool interrupted = true;
  for (; interrupted && at < far_off; ++at) {
    bare_clock_cache cache(2, 4);
    cache.limit(1);
    access_step first{}, second{};
    interrupted = single_step::interrupt(at, [&] { first = cache.look(0); }, [&] { second = cache.look(1); });
    ASSERT_EQ(1, (first == access_step::claimed) + (second == access_step::claimed)) << "instruction " << at;
    cache.limit(2);
    ASSERT_EQ(access_step::claimed, cache.look(2)) << "instruction " << at;
    ASSERT_EQ(1u, cache.view().directory.layout.place(cache.load(2)));
  }
  EXPECT_GT(at, 10u);
  EXPECT_LT(at, far_off);
}

/// Threads pin, claim, fill and unpin two lines of one frame, as fast as they can.
template <class Cache>
struct pin_race {
  static constexpr u64 lines = 2;
  u32 rounds = 0;
  std::shared_ptr<Cache> cache;

  void prepare(run_shape) { cache = std::make_shared<Cache>(1, lines); }

  template <thread_group G>
  void operator()(G const&, test_context const& c) const {
    backoff patience(20 * one_second_ns);
    for (u32 round = 0; round < rounds; ++round) {
      const u64 draw = random_word(c.seed(), c.thread, round);
      u64* entry = nullptr;
      if (!PENSTOCK_CHECK(*c.report, acquire_line(draw % lines, (draw >> 32 & 1) != 0, entry, patience))) return;
      const u64 e = load(entry);
      PENSTOCK_CHECK_EQ(*c.report, line_state::valid, entry::state(e));
      for (u64 k = 0; k < 8; ++k) PENSTOCK_CHECK(*c.report, cache->holds_word(draw % lines, {entry, e}, draw >> 40 & 63));
      PENSTOCK_CHECK(*c.report, entry::same(e, load(entry)));
      cache->view().unpin(entry);
    }
  }

  static u64 load(u64* entry) { return device_ref<u64>(*entry).load(acquire); }

  bool acquire_line(u64 line, bool wide, u64*& entry, backoff& patience) const {
    for (;;) {
      switch (cache->look(line, wide, entry)) {
        case access_step::pinned: return true;
        case access_step::claimed: cache->fill(line, entry); return true;
        case access_step::filling:
          if (wait_for_fill(entry, patience)) return true;
          cache->view().unpin(entry);
          break;
        default: break;
      }
      if (!patience.pause()) return false;
    }
  }

  bool wait_for_fill(u64* entry, backoff& patience) const {
    while (entry::state(load(entry)) == line_state::filling && patience.pause()) {}
    return entry::state(load(entry)) == line_state::valid;
  }

  void verify(check_report& report, run_shape) const {
    for (u64 line = 0; line < lines; ++line) PENSTOCK_CHECK_EQ(report, 0, entry::pins(cache->load(line)));
  }
};

#ifdef PENSTOCK_TSAN
constexpr u32 race_rounds = 10000;
#else
constexpr u32 race_rounds = 200000;
#endif

TYPED_TEST(line_cache_view_test, a_pinned_line_keeps_its_bytes_while_its_frame_is_fought_for) {
  pin_race<TypeParam> body;
  body.rounds = race_rounds;
  for (const u32 threads : {2u, 3u}) run_lone(body, threads, test_seed());
}

/// One thread claims, publishes and evicts a line again and again; others add pins at any moment and take them back.
template <class Cache>
struct passers_by {
  u32 rounds = 0;
  std::shared_ptr<Cache> cache;
  std::shared_ptr<u32> over;
  std::shared_ptr<u32> passing;  ///< threads that have begun

  void prepare(run_shape) {
    cache = std::make_shared<Cache>(1, 2);
    over = std::make_shared<u32>(0);
    passing = std::make_shared<u32>(0);
  }

  template <thread_group G>
  void operator()(G const&, test_context const& c) const {
    backoff patience(10 * one_second_ns);
    if (c.thread != 0) {
      device_ref<u32>(*passing).fetch_add(1, relaxed);
      while (device_ref<u32>(*over).load(relaxed) == 0 && !exhausted(patience)) {
        for (u32 k = 0; k < 1000; ++k) pass(k % 2);
      }
      return;
    }
    while (device_ref<u32>(*passing).load(relaxed) + 1 < c.run.threads && patience.pause()) {}
    for (u32 round = 0; round < rounds && !exhausted(patience);) {
      if (cache->look(round % 2) != access_step::claimed) continue;
      cache->fill(round % 2);
      cache->unpin(round % 2);
      ++round;
    }
    PENSTOCK_CHECK(*c.report, patience.deadline_ns() > now_ns());
    device_ref<u32>(*over).store(1, relaxed);
  }

  // A thread that was late with its look: it pins whatever word it finds and takes the pin back.
  void pass(u64 line) const {
    directory_view const& directory = cache->view().directory;
    const device_ref<u64> word(directory.entries[directory.is_direct() ? line : 1]);
    word.fetch_add(entry::one_pin, relaxed);
    word.fetch_sub(entry::one_pin, relaxed);
  }
  static bool exhausted(backoff& patience) { return now_ns() > patience.deadline_ns(); }

  void verify(check_report& report, run_shape) const {
    for (u64 line : {0u, 1u}) PENSTOCK_CHECK_EQ(report, 0, entry::pins(cache->load(line)));
  }
};

TYPED_TEST(line_cache_view_test, no_passing_pin_is_lost) {
  passers_by<TypeParam> body;
  body.rounds = race_rounds;
  run_lone(body, 2, test_seed());
}

}  // namespace
}  // namespace penstock::test
