// What every replacement policy owes the cache, whatever its taste in victims. A policy joins by a `policy_maker`.
#include "support/bare_cache.hpp"
#include "support/expect_clean.hpp"

#include <gtest/gtest.h>

#include <set>

namespace penstock::test {
namespace {

/// Frames in turn; nothing gets a second one.
struct fifo_policy {
  u64* next = nullptr;
  u32 frames = 0;

  u32 candidate() const { return static_cast<u32>(device_ref<u64>(*next).fetch_add(1, relaxed) % frames); }
  u64 search_limit() const { return frames; }
  static bool spares(u64&, u64) { return false; }
};
static_assert(replacement_policy<fifo_policy>);

/// Any frame; a referenced one is spared once.
struct random_policy {
  u64* drawn = nullptr;
  u32 frames = 0;

  u32 candidate() const { return static_cast<u32>(scatter(device_ref<u64>(*drawn).fetch_add(1, relaxed)) % frames); }
  u64 search_limit() const { return 8ull * frames; }
  static bool spares(u64& word, u64 seen) { return clock_policy::spares(word, seen); }
};
static_assert(replacement_policy<random_policy>);

/// Any policy, with its questions counted.
template <replacement_policy Policy>
struct counted : Policy {
  u64* asked = nullptr;

  u32 candidate() const {
    ++*asked;
    return Policy::candidate();
  }
};

template <replacement_policy Policy>
class replacement_policy_test : public testing::Test {
 protected:
  static constexpr u32 frames = 6;
  static constexpr u64 lines = 64;
  using cache_type = bare_cache<counted<Policy>>;

  // What a line must not be to be a victim.
  static constexpr u64 holds[] = {entry::one_pin, entry::dirty_bit, entry::writing_bit, entry::one_pin | entry::dirty_bit};

  // Frames 0 to 4 are kept: pinned, dirty, being written, both, filling. Line 5 has the last one.
  void keep_all_but_one() {
    for (u64 line = 0; line < frames; ++line) {
      ASSERT_EQ(access_step::claimed, cache.look(line));
      if (line == 4) continue;
      cache.fill(line);
      cache.unpin(line);
      if (line < 4) cache.add(line, holds[line]);
    }
    for (u64 line = 0; line < 5; ++line) kept[line] = identity(line);
  }

  u64 identity(u64 line) const { return cache.load(line) & ~entry::referenced_bit; }

  void expect_kept() const {
    for (u64 line = 0; line < 5; ++line) EXPECT_EQ(kept[line], identity(line)) << "line " << line;
  }

  u64 position = 0;
  u64 asked = 0;
  cache_type cache{frames, lines, {{&position, frames}, &asked}};
  u64 kept[5] = {};
};

using policies = testing::Types<clock_policy, fifo_policy, random_policy>;
TYPED_TEST_SUITE(replacement_policy_test, policies);

TYPED_TEST(replacement_policy_test, takes_no_frame_that_is_pinned_filling_dirty_or_being_written) {
  this->keep_all_but_one();
  for (u64 line = 6; line < this->lines; ++line) {
    ASSERT_TRUE(this->cache.bring(line)) << "line " << line;
    EXPECT_EQ(5u, this->cache.view().directory.layout.place(this->cache.load(line)));
    this->expect_kept();
  }
}

TYPED_TEST(replacement_policy_test, search_is_bounded_when_all_are_kept) {
  this->keep_all_but_one();
  this->cache.add(5, entry::one_pin);
  const u64 before = this->asked;
  EXPECT_EQ(access_step::no_frame, this->cache.look(6));
  EXPECT_LE(this->asked - before, this->cache.view().policy.search_limit());
  EXPECT_EQ(0u, this->cache.load(6) & (~0ull << entry::pin_shift | 3u));
  this->expect_kept();
}

TYPED_TEST(replacement_policy_test, referenced_lines_give_way_within_one_search) {
  for (u64 line = 0; line < this->frames; ++line) ASSERT_TRUE(this->cache.bring(line));
  for (u64 round = 0; round < 50; ++round) {
    for (u64 line = 0; line < this->lines; ++line) {
      if (entry::state(this->cache.load(line)) == line_state::valid) this->cache.reference(line);
    }
    const u64 newcomer = (this->frames + round) % this->lines;
    const access_step step = this->cache.look(newcomer);
    ASSERT_TRUE(step == access_step::claimed || step == access_step::pinned) << "round " << round;
    if (step == access_step::claimed) this->cache.fill(newcomer);
    this->cache.unpin(newcomer);
  }
}

TYPED_TEST(replacement_policy_test, uses_every_frame) {
  std::set<u64> used;
  for (u64 round = 0; round < 10 * this->lines; ++round) {
    ASSERT_TRUE(this->cache.bring(round % this->lines));
    if (round >= this->frames) used.insert(this->cache.view().directory.layout.place(this->cache.load(round % this->lines)));
  }
  EXPECT_EQ(this->frames, used.size());
}

TYPED_TEST(replacement_policy_test, a_failed_line_gives_way_once_nobody_holds_it) {
  this->keep_all_but_one();
  auto const& view = this->cache.view();
  line_sink::finish(this->cache.target(view.directory.entries + 4), make_status(failure::deadline));
  this->cache.add(5, entry::one_pin);
  ASSERT_FALSE(this->cache.bring(6)) << "its asker has not let go";
  this->cache.unpin(4);
  EXPECT_TRUE(this->cache.bring(6));
  EXPECT_EQ(line_state::empty, entry::state(this->cache.load(4)));
}

// Better lines are passed by, but not for ever: one frame that can be had is found, whoever has it.
TYPED_TEST(replacement_policy_test, finds_the_only_frame_however_its_line_is_advised) {
  for (const advice how : {advice::stream, advice::normal, advice::keep}) {
    this->cache.advise(how);
    if (how == advice::stream) this->keep_all_but_one();
    for (u64 line = 6; line < this->lines; ++line) {
      const access_step step = this->cache.look(line);
      ASSERT_EQ(access_step::claimed, step) << "line " << line;
      this->cache.fill(line);
      this->cache.reference(line);
      this->cache.unpin(line);
      this->expect_kept();
    }
  }
}

/// Pins its candidate at the last moment: after it was found at rest, before it is taken.
struct interfering_policy : fifo_policy {
  u64* pins = nullptr;

  bool spares(u64& word, u64) const {
    if (*pins == 0) return false;
    --*pins;
    device_ref<u64>(word).fetch_add(entry::one_pin, relaxed);
    return false;
  }
};
static_assert(replacement_policy<interfering_policy>);

TEST(replacement, a_pin_that_comes_before_the_eviction_wins) {
  u64 position = 0, pins = 0;
  bare_cache<interfering_policy> cache(2, 8, {{&position, 2}, &pins});
  ASSERT_TRUE(cache.bring(0));
  ASSERT_TRUE(cache.bring(1));
  pins = 1;
  ASSERT_TRUE(cache.bring(2));
  EXPECT_EQ(1u, entry::pins(cache.load(0)));
  EXPECT_EQ(line_state::valid, entry::state(cache.load(0)));
  EXPECT_EQ(line_state::empty, entry::state(cache.load(1)));
  EXPECT_TRUE(cache.holds_word(0, 5));
}

TEST(clock_policy, gives_referenced_lines_a_second_turn) {
  u64 hand = 0;
  bare_cache<> cache(4, 8, {&hand, 4});
  for (u64 line = 0; line < 4; ++line) {
    ASSERT_TRUE(cache.bring(line));
    if (line != 2) cache.reference(line);
  }
  ASSERT_TRUE(cache.bring(4));
  EXPECT_EQ(line_state::empty, entry::state(cache.load(2))) << "the only one that nobody has used";
  // The hand took two bits on its way; the line it left alone goes last.
  ASSERT_TRUE(cache.bring(5));
  EXPECT_EQ(line_state::valid, entry::state(cache.load(1)));
  EXPECT_EQ(line_state::empty, entry::state(cache.load(0)));
  EXPECT_EQ(2u, cache.count(counter::evictions));
}

TEST(clock_policy, finds_its_way_when_all_but_one_are_pinned) {
  u64 hand = 0;
  bare_cache<> cache(8, 32, {&hand, 8});
  for (u64 line = 0; line < 7; ++line) ASSERT_TRUE(cache.hold(line));
  for (u64 round = 0; round < 200; ++round) {
    const u64 line = 7 + round % 25;
    const access_step step = cache.look(line);
    ASSERT_EQ(access_step::claimed, step) << "at the first attempt, round " << round;
    cache.fill(line);
    cache.reference(line);
    cache.unpin(line);
  }
}

}  // namespace
}  // namespace penstock::test
