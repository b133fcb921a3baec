// Lines of a set-associative directory that lie away from their home: they are found, one that is taken leaves nothing behind,
// and claims that meet between any two instructions in different sets leave a line in one frame.
#include "support/bare_cache.hpp"
#include "support/run_everywhere.hpp"
#include "support/single_step.hpp"

#include <set>

namespace penstock::test {
namespace {

/// A cache of sets that knows which lines are at home where.
struct roomy_sets : bare_set {
  using bare_set::bare_set;

  std::vector<u64> at_home_in(u32 set, u64 count, u64 first = 0) const {
    std::vector<u64> found;
    for (u64 line = first; found.size() < count && line < view().datasets[0].lines; ++line) {
      if (home_of(line) == set) found.push_back(line);
    }
    EXPECT_EQ(count, found.size());
    return found;
  }
  void use(u64 line) {
    ASSERT_TRUE(bring(line));
    reference(line);
  }
  u32 away(u32 set) const { return set_header::away(word(set, 0)); }
  void hold_set(u32 set, bool hold) {
    for (u32 w = 0; w < set_ways; ++w)
      device_ref<u64>(word(set, 1 + w)).fetch_add(hold ? entry::one_pin : 0 - entry::one_pin, relaxed);
  }
};

std::vector<u64> random_lines(u64 count, u64 of) {
  std::mt19937_64 rng(test_seed());
  std::set<u64> drawn;
  while (drawn.size() < count) drawn.insert(rng() % of);
  std::vector<u64> lines(drawn.begin(), drawn.end());
  std::shuffle(lines.begin(), lines.end(), rng);
  return lines;
}

TEST(away_lines, how_far_a_line_may_lie_from_home) {
  EXPECT_EQ(0u, set_map::of(1000, 1).reach_bits);
  EXPECT_EQ(1u, set_map::of(1000, 3).reach_bits) << "no set twice";
  EXPECT_EQ(4u, set_map::of(1 << 20, 16).reach_bits);
  EXPECT_EQ(4u, set_map::of(1ull << 30, 1 << 12).reach_bits);
  EXPECT_EQ(2u, set_map::of(1ull << 30, 1 << 9).reach_bits) << "the version stays long";
  EXPECT_EQ(3u, set_map::of(1ull << 30, 1 << 6).reach_bits) << "it is short anyway";
  EXPECT_EQ(0u, set_map::of(1ull << 30, 1 << 3).reach_bits);
  for (const u64 lines : {1ull, 1000ull, 1ull << 30, 1ull << 40}) {
    for (u32 sets = 1; sets < 1u << 28; sets = 3 * sets + 1) {
      const set_map map = set_map::of(lines, sets);
      EXPECT_LE(map.reach_bits == 0 ? 0 : map.place_bits(), set_map::most_place_bits);
      EXPECT_LE(1u << map.reach_bits, sets);
    }
  }
}

// Of lines drawn at random 5.5 % do not find room at home.
TEST(away_lines, nearly_all_find_room_at_80_percent) {
  constexpr u32 sets = 1000, drawn = sets * set_ways * 4 / 5;
  roomy_sets cache(1 << 16, sets);
  const std::vector<u64> lines = random_lines(drawn, 1 << 16);
  for (const u64 line : lines) cache.use(line);
  u64 without = 0, away = 0;
  for (const u64 line : lines) {
    without += cache.entry_of(line) == nullptr;
    away += cache.entry_of(line) != nullptr && cache.set_with(line) != cache.home_of(line);
  }
  EXPECT_LE(without, drawn / 1000);
  EXPECT_GT(away, drawn / 20) << "as many do not fit at home";
  EXPECT_LT(away, drawn / 8);
}

TEST(away_lines, are_found_and_no_others) {
  for (const u32 sets : {2u, 3u, 16u, 40u}) {
    roomy_sets cache(4096, sets);
    const line_reader reader = cache.reader();
    std::set<u64> in;
    // More of one home than it has ways, and than the next set has, where there are others: they lie at two distances. The sets
    // of the last home go on at the beginning.
    for (const u32 home : {0u, sets - 1}) {
      for (const u64 line : cache.at_home_in(home, home != 0 ? 3 : cache.view().directory.reach() > 2 ? 17 : 9)) {
        cache.use(line);
        in.insert(line);
      }
    }
    EXPECT_NE(0u, cache.away(0)) << sets;
    for (u64 line = 0; line < 4096; ++line) {
      const bool is_in = in.contains(line);
      ASSERT_EQ(is_in, cache.entry_of(line) != nullptr) << line << " of " << sets << " sets";
      ASSERT_EQ(is_in, cache.view().directory.glance(line_id{line}).entry != nullptr);
      hit_line at{};
      ASSERT_EQ(is_in, reader.find(line * bare_set::line_bytes, at)) << line << " of " << sets << " sets";
      if (!is_in) continue;
      u64 word = 0;
      ASSERT_EQ(cache.entry_of(line), at.entry);
      ASSERT_TRUE(reader.try_read(at, 24, word));
      ASSERT_EQ(stamp(line * bare_set::line_words + 3), word);
      ASSERT_EQ(1u, cache.frames_of(line));
    }
  }
}

TEST(away_lines, a_home_forgets_sets_in_which_it_has_none) {
  roomy_sets cache(4096, 16);
  const std::vector<u64> lines = cache.at_home_in(3, set_ways + 3);
  for (u32 k = 0; k <= set_ways; ++k) cache.use(lines[k]);
  ASSERT_EQ(1u << 1, cache.away(3));
  ASSERT_EQ(4u, cache.set_with(lines[set_ways]));
  for (u32 set = 4; set != 3; set = (set + 1) % 16) {
    for (const u64 line : cache.at_home_in(set, set_ways)) cache.bring(line);
  }
  // Others take all of the fourth set.
  for (const u64 line : cache.at_home_in(4, 2 * set_ways, 2048)) cache.bring(line);
  ASSERT_EQ(nullptr, cache.entry_of(lines[set_ways]));
  EXPECT_EQ(1u << 1, cache.away(3)) << "until the next claim at home";
  cache.bring(lines[set_ways + 1]);
  EXPECT_EQ(0u, cache.away(3));
}

// A cache that is full gives frames away at home: what lies near it is another home's, and no worse.
TEST(away_lines, take_no_way_that_another_line_has) {
  roomy_sets cache(4096, 20);
  for (u32 set = 0; set < 20; ++set) {
    for (const u64 line : cache.at_home_in(set, set_ways)) cache.bring(line);
  }
  for (const u64 line : cache.at_home_in(5, 40, 1024)) {
    ASSERT_TRUE(cache.bring(line));
    ASSERT_EQ(5u, cache.set_with(line));
  }
  EXPECT_EQ(40u, cache.count(counter::evictions));
  cache.hold_set(5, true);
  EXPECT_FALSE(cache.bring(cache.at_home_in(5, 1, 3000)[0])) << "no way of home can be had";
  cache.hold_set(5, false);
}

// A look at fifteen sets is not for each claim of a cache that is full.
TEST(away_lines, a_home_remembers_that_the_sets_near_it_are_full) {
  roomy_sets cache(4096, 20);
  const auto is_full = [&](u32 set) { return set_header::full(cache.word(set, 0)); };
  const std::vector<u64> lines = cache.at_home_in(5, 16 * set_ways + 2);
  for (u64 k = 0; k < 16 * set_ways; ++k) ASSERT_TRUE(cache.bring(lines[k]));
  EXPECT_FALSE(is_full(5)) << "each has found a way";
  EXPECT_EQ(0u, cache.count(counter::evictions));
  cache.limit(2);
  ASSERT_TRUE(cache.bring(lines[16 * set_ways]));
  EXPECT_FALSE(is_full(5)) << "one that may not go away has not looked";
  cache.limit(set_ways);
  ASSERT_TRUE(cache.bring(lines[16 * set_ways + 1]));
  EXPECT_TRUE(is_full(5));
  EXPECT_EQ(2u, cache.count(counter::evictions));
  for (u32 set = 0; set < 20; ++set) EXPECT_EQ(set == 5, is_full(set)) << set;
  const u64 beside = cache.at_home_in(4, 1)[0];
  ASSERT_TRUE(cache.bring(beside));
  EXPECT_TRUE(is_full(5)) << "of its own claims alone";
}

// Parts of the cache are parts of each home.
TEST(away_lines, lines_that_have_a_part_stay_at_home) {
  roomy_sets cache(4096, 20);
  cache.limit(2);
  for (const u64 line : cache.at_home_in(5, 10)) {
    ASSERT_TRUE(cache.bring(line));
    ASSERT_EQ(5u, cache.set_with(line));
  }
  EXPECT_EQ(8u, cache.count(counter::evictions));
}

#define NEEDS_SINGLE_STEPS() \
  if (!can_single_step) GTEST_SKIP() << "stops between instructions: x86-64 without sanitizers only"

enum class race {
  one_line_home_first,  ///< the way that the first one wants is at home, that of the second one away
  one_line_away_first,  ///< the other way round
  line_beside_it,       ///< another line of this home goes away into a set that the first one has seen without any
};

// After some of a claim's instructions another thread claims in another set, and fills. A way at home is taken once the one
// thread has seen it, and given back to the other.
TEST(away_lines, claims_in_two_sets_leave_a_line_in_one_frame_and_in_sight) {
  NEEDS_SINGLE_STEPS();
  constexpr u64 far_off = 40000;
  for (const race which : {race::one_line_home_first, race::one_line_away_first, race::line_beside_it}) {
    u64 at = 0, last_race = 0;
    u32 raced = 0;
    bool interrupted = true;
    for (; interrupted && at < far_off && at < last_race + 100; at += 3) {
      roomy_sets cache(1024, 2);
      const std::vector<u64> lines = cache.at_home_in(0, 12);
      for (u32 k = 0; k + 1 < set_ways; ++k) cache.use(lines[k]);
      const u64 first_line = lines[8], second_line = which == race::line_beside_it ? lines[9] : first_line;
      // One that was away has gone: its set is named still.
      if (which == race::line_beside_it) cache.word(0, 0) = set_header::committed(cache.word(0, 0), 6, 1u << 1, false);
      u64& last_way = cache.word(0, set_ways);
      const auto take = [&](bool taken) {
        device_ref<u64>(last_way).fetch_add(taken ? entry::one_pin : 0 - entry::one_pin, relaxed);
      };
      const bool away_first = which == race::one_line_away_first;
      if (away_first) take(true);
      access_step first{}, second{};
      u64 *entry = nullptr, *other = nullptr;
      interrupted = single_step::interrupt(
          at, [&] { first = cache.look(first_line, false, entry); },
          [&] {
            take(!away_first);
            second = cache.look(second_line, false, other);
            if (second == access_step::claimed) cache.fill(second_line, other);
            take(away_first);
          });
      raced += second == access_step::claimed;
      if (second == access_step::claimed) last_race = at;
      if (first == access_step::claimed) cache.fill(first_line, entry);
      for (const u64 line : {first_line, second_line}) {
        if (!interrupted && line == second_line && line != first_line) continue;
        ASSERT_LE(cache.frames_of(line), 1u) << "line " << line << ", instruction " << at;
        const bool claimed =
            (line == first_line && first == access_step::claimed) || (line == second_line && second == access_step::claimed);
        ASSERT_EQ(claimed, cache.entry_of(line) != nullptr) << "line " << line << ", instruction " << at;
      }
      ASSERT_FALSE(which != race::line_beside_it && first == access_step::claimed && second == access_step::claimed)
          << "instruction " << at;
    }
    EXPECT_GT(raced, 20u) << static_cast<int>(which);
    EXPECT_LT(at, far_off);
  }
}

}  // namespace
}  // namespace penstock::test
