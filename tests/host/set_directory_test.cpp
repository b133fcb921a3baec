// The set-associative directory: sets and tags, and claims of one set that meet between any two instructions.
#include "penstock/host/error.hpp"
#include "support/bare_cache.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"
#include "support/single_step.hpp"

#include <map>

namespace penstock::test {
namespace {

TEST(set_map, mixing_is_a_bijection) {
  for (const u64 lines : {1, 2, 3, 8, 100, 4096, 5000, 1 << 16}) {
    const set_map map = set_map::of(lines, 1);
    std::vector<bool> taken(1ull << ceil_log2(lines));
    for (u64 line = 0; line < taken.size(); ++line) {
      const u64 x = map.mix(line);
      ASSERT_LT(x, taken.size());
      ASSERT_FALSE(taken[x]) << lines << " lines: two are mixed to " << x;
      taken[x] = true;
    }
  }
}

TEST(set_map, set_and_tag_name_every_line) {
  for (const u64 lines : {1, 2, 7, 128, 1000, 1 << 14, 40000}) {
    for (const u32 sets : {1u, 2u, 3u, 5u, 18u, 64u, 1000u}) {
      const set_map map = set_map::of(lines, sets);
      std::map<std::pair<u64, u64>, u64> names;
      for (u64 line = 0; line < lines; ++line) {
        const u64 x = map.mix(line);
        ASSERT_LT(map.set_of(x), sets);
        const auto [at, fresh] = names.try_emplace({map.set_of(x), x & ((1ull << map.tag_bits()) - 1)}, line);
        ASSERT_TRUE(fresh) << "lines " << line << " and " << at->second << " of " << lines << " in " << sets << " sets";
      }
    }
  }
}

// Too many to try all. A set's mixed numbers follow each other, so it is enough that a run of 2^P + 1 never lies in one set.
TEST(set_map, a_set_never_has_more_lines_than_tags) {
  std::mt19937_64 rng(test_seed());
  for (const u32 bits : {20u, 32u, 33u, 38u, 40u}) {
    for (const u32 sets : {8192u, 8193u, 10007u, 1u << 20, 153391689u}) {
      const set_map map = set_map::of(1ull << bits, sets);
      const u64 run = 1ull << map.tag_bits(), all = 1ull << bits;
      for (u32 round = 0; round < 20000 && run < all; ++round) {
        const u64 x = rng() % (all - run);
        ASSERT_LT(map.set_of(x), map.set_of(x + run)) << bits << " bits, " << sets << " sets, x " << x;
      }
      ASSERT_LE(map.tag_bits(), 27u) << bits << " bits, " << sets << " sets";
    }
  }
}

TEST(set_map, lines_spread_over_the_sets) {
  const set_map map = set_map::of(1 << 20, 1000);
  for (const u64 stride : {1u, 2u, 64u, 1024u, 1000u}) {
    std::vector<u32> load(1000);
    for (u64 k = 0; k < 5000; ++k) ++load[map.set_of(map.mix(k * stride % (1 << 20)))];
    EXPECT_LE(*std::max_element(load.begin(), load.end()), 4 * 5000u / 1000) << "every " << stride << "th line";
  }
}

/// How many of `count` lines, each `stride`th of `lines` from `first` on, lack room in a cache that is a quarter larger.
u64 without_room(u64 lines, u64 first, u64 count, u64 stride) {
  const u32 sets = std::max<u32>(1, static_cast<u32>(count + count / 4) / set_ways);
  const set_map map = set_map::of(lines, sets);
  std::vector<u32> load(sets);
  u64 more = 0;
  for (u64 k = 0; k < count; ++k) more += ++load[map.set_of(map.mix(first + k * stride))] > set_ways ? 1 : 0;
  return more;
}

constexpr u64 many_lines[] = {5000, 262145, 300001, 2097153, 3000000, 16777217};

TEST(set_map, lines_that_follow_each_other_find_room) {
  const auto expect_room = [](u64 lines, u64 first, u64 count) {
    EXPECT_LE(without_room(lines, first, count, 1), count / 1000) << count << " of " << lines << " lines from " << first;
  };
  for (const u64 lines : many_lines) {
    expect_room(lines, 0, std::min<u64>(lines, 1 << 21));
    expect_room(lines, lines / 3, lines / 7);
    expect_room(lines, lines / 2, lines / 40);
    expect_room(lines, lines - lines / 9, lines / 9);
  }
  // A cache's share of very many.
  for (u32 bits = 25; bits <= 34; ++bits) {
    expect_room((1ull << bits) - 99, 1ull << (bits - 1), 1 << 20);
    expect_room((1ull << bits) - 99, 12345, 300001);
  }
}

TEST(set_map, lines_that_are_a_power_of_two_apart_find_room) {
  for (const u64 lines : many_lines) {
    for (const u64 stride : {2u, 4u, 16u, 64u, 256u, 1024u}) {
      const u64 count = lines / stride;
      EXPECT_LE(without_room(lines, 0, count, stride), count / 20 + 1) << "each " << stride << "th of " << lines;
    }
  }
}

TEST(set_header, counts_commits_between_hand_and_distances) {
  u64 h = 0;
  for (u32 k = 0; k < 40; ++k) {
    const u32 hand = (k + 1) % set_ways, away = 1u << (1 + k % 15);
    h = set_header::committed(h, hand, away, k % 3 == 0);
    EXPECT_EQ(k + 1, set_header::claims(h));
    EXPECT_EQ(hand, set_header::hand(h));
    EXPECT_EQ(away, set_header::away(h));
    EXPECT_EQ(k % 3 == 0, set_header::full(h));
  }
  const u64 last = set_header::committed(set_header::claims_mask, 3, 0x8002, false);
  EXPECT_EQ(0u, set_header::claims(last)) << "the count wraps, and changes nothing beside it";
  EXPECT_EQ(3u, set_header::hand(last));
  EXPECT_EQ(0x8002u, set_header::away(last));
  EXPECT_FALSE(set_header::full(last));
}

TEST(set_directory, finds_each_line_of_a_full_set_and_no_other) {
  bare_set cache(64);
  for (u64 line = 0; line < set_ways; ++line) ASSERT_TRUE(cache.bring(line));
  for (u64 line = 0; line < 64; ++line) {
    EXPECT_EQ(line < set_ways ? line_state::valid : line_state::empty, entry::state(cache.load(line)));
    EXPECT_EQ(line < set_ways, cache.entry_of(line) != nullptr);
    EXPECT_TRUE(line >= set_ways || cache.holds_word(line, 3));
  }
}

// Which way a line has decides how much of the set a validated read looks at.
TEST(set_directory, a_read_without_a_pin_begins_in_every_way) {
  bare_set cache(64);
  const line_reader reader = cache.reader();
  for (u64 line = 0; line < set_ways; ++line) {
    ASSERT_TRUE(cache.bring(line));
    cache.reference(line);
  }
  for (u64 line = 0; line < 64; ++line) {
    hit_line at{};
    EXPECT_EQ(line < set_ways, reader.find(line * bare_set::line_bytes, at)) << line;
    if (line >= set_ways) continue;
    EXPECT_EQ(cache.entry_of(line), at.entry);
    u64 word = 0;
    EXPECT_TRUE(reader.try_read(at, 24, word));
    EXPECT_EQ(stamp(line * bare_set::line_words + 3), word);
  }
}

// The first may be a claim that will not be committed.
TEST(set_directory, prefers_a_valid_entry_to_one_that_is_being_filled) {
  for (const u32 filling : {0u, 3u, 6u}) {
    bare_set cache(64);
    for (u64 line = 0; line < set_ways; ++line) ASSERT_TRUE(cache.bring(line));
    const u64 valid = cache.load(2);
    for (const line_state state : {line_state::filling, line_state::empty}) {
      const u64 before = cache.way(filling);
      cache.way(filling) = entry::one_pin | (valid & entry::identity_mask) | static_cast<u64>(state);
      if (filling != 2) {
        EXPECT_EQ(&cache.way(2), cache.entry_of(2)) << filling;
        EXPECT_EQ(valid, cache.load(2));
        EXPECT_EQ(&cache.way(2), cache.view().directory.glance(line_id{2}).entry);
      }
      cache.way(filling) = before;
    }
  }
}

TEST(set_directory, every_claim_of_a_frame_takes_another_version) {
  bare_set cache(64);
  std::map<u64, u32> seen[set_ways];
  for (u64 round = 0; round < 700; ++round) {
    const u64 line = round * 11 % 64;
    if (cache.entry_of(line) != nullptr) continue;
    ASSERT_TRUE(cache.bring(line));
    const u64 version =
        (cache.load(line) & entry::identity_mask) >> (entry::identity_shift + cache.view().directory.layout.place_bits);
    EXPECT_EQ(1u, ++seen[cache.way_of(line)][version]) << "way " << cache.way_of(line);
  }
  for (auto const& versions : seen) EXPECT_GT(versions.size(), 10u);
}

TEST(set_directory, gives_referenced_lines_a_second_turn) {
  bare_set cache(64);
  for (u64 line = 0; line < set_ways; ++line) {
    ASSERT_TRUE(cache.bring(line));
    if (line != 4) cache.reference(line);
  }
  ASSERT_TRUE(cache.bring(20));
  EXPECT_EQ(4u, cache.way_of(20)) << "the only one that nobody has used";
  for (u32 w = 0; w < 4; ++w) EXPECT_EQ(0u, cache.way(w) & entry::referenced_bit) << "the hand went by";
  EXPECT_NE(0u, cache.way(5) & entry::referenced_bit);
  // From behind the victim on: 5 and 6 are referenced, 0 is not any more.
  ASSERT_TRUE(cache.bring(21));
  EXPECT_EQ(0u, cache.way_of(21));
  EXPECT_EQ(2u, cache.count(counter::evictions));
}

TEST(set_directory, takes_no_way_that_is_pinned_filling_dirty_or_being_written) {
  bare_set cache(64);
  const u64 holds[] = {entry::one_pin, entry::dirty_bit, entry::writing_bit, entry::one_pin | entry::dirty_bit};
  for (u64 line = 0; line < 6; ++line) {
    ASSERT_EQ(access_step::claimed, cache.look(line));
    if (line == 4) continue;
    cache.fill(line);
    cache.unpin(line);
    if (line < 4) cache.add(line, holds[line]);
  }
  line_sink::finish(cache.target(cache.entry_of(4)), make_status(failure::deadline));  // its asker has not let go
  for (u64 line = 6; line < 64; ++line) {
    ASSERT_TRUE(cache.bring(line));
    for (u64 kept = 0; kept < 5; ++kept) EXPECT_EQ(kept, cache.way_of(kept));
  }
  cache.unpin(4);
  for (u64 line = 6; line < 20; ++line) ASSERT_TRUE(cache.bring(line));
  EXPECT_EQ(nullptr, cache.entry_of(4)) << "a failed line gives way";
}

#define NEEDS_SINGLE_STEPS() \
  if (!can_single_step) GTEST_SKIP() << "stops between instructions: x86-64 without sanitizers only"

// After any third instruction of a claim another thread claims the same line in another way, and fills it: the way that the
// first one wants is pinned for just so long.
TEST(set_directory, two_that_claim_one_line_never_both_have_it) {
  NEEDS_SINGLE_STEPS();
  constexpr u64 wanted = 20, far_off = 20000;
  u64 at = 0, last_race = 0;
  u32 raced = 0, undone = 0;
  bool interrupted = true;
  // Once the first claim is committed the other only joins it.
  for (; interrupted && at < far_off && at < last_race + 100; at += 3) {
    bare_set cache(64);
    for (u64 line = 0; line < set_ways; ++line) ASSERT_TRUE(cache.bring(line));
    access_step first{}, second{};
    u64 *entry = nullptr, *other = nullptr;
    interrupted = single_step::interrupt(
        at, [&] { first = cache.look(wanted, false, entry); },
        [&] {
          const device_ref<u64> victim(cache.way(0));
          victim.fetch_add(entry::one_pin, relaxed);
          second = cache.look(wanted, false, other);
          if (second == access_step::claimed) cache.fill(wanted, other);
          victim.fetch_sub(entry::one_pin, relaxed);
        });
    ASSERT_EQ(1u, cache.frames_of(wanted)) << "instruction " << at;
    const bool both = first == access_step::claimed && second == access_step::claimed;
    ASSERT_FALSE(both) << "instruction " << at;
    if (second == access_step::claimed) {
      ++raced;
      last_race = at;
    }
    if (second == access_step::claimed && entry::state(cache.way(0)) == line_state::empty) {
      ++undone;
      ASSERT_EQ(0u, entry::pins(cache.way(0))) << "instruction " << at;
    }
    if (first == access_step::claimed) cache.fill(wanted, entry);
    ASSERT_TRUE(cache.holds_word(wanted, 7));
    ASSERT_EQ((entry != nullptr) + (other != nullptr && interrupted), entry::pins(cache.load(wanted))) << "instruction " << at;
  }
  EXPECT_GT(raced, 20u);
  EXPECT_GT(undone, 0u) << "a claim was taken back";
  EXPECT_LT(at, far_off);
}

// Another line has taken the way by the time the pin is added.
TEST(set_directory, who_joins_a_fill_notices_that_the_way_has_another_line) {
  NEEDS_SINGLE_STEPS();
  for (const bool wide : {false, true}) {
    u64 at = 0;
    bool interrupted = true;
    for (; interrupted && at < 20000; ++at) {
      bare_set cache(64);
      for (u32 w = 1; w < set_ways; ++w) cache.way(w) = entry::one_pin;
      u64 *filling = nullptr, *entry = nullptr;
      ASSERT_EQ(access_step::claimed, cache.look(8, false, filling));
      access_step step{};
      bool let_go = false;
      interrupted = single_step::interrupt(
          at, [&] { step = cache.look(8, wide, entry); },
          [&] {
            cache.fill(8, filling);
            cache.view().unpin(filling);
            let_go = true;
            u64* next = nullptr;
            cache.look(9, false, next);
          });
      const bool holds = step == access_step::pinned || step == access_step::filling;
      const bool taken = cache.frames_of(9) == 1;
      ASSERT_FALSE(holds && taken) << "instruction " << at;
      ASSERT_EQ(u64{holds} + u64{taken} + u64{!let_go}, entry::pins(*filling)) << "instruction " << at;
    }
    EXPECT_LT(at, 20000u);
  }
}

TEST(set_directory, a_herd_on_one_line_fills_it_once) {
  stamped_media media(1 << 16);
  for (const directory_kind directory : both_directories) {
    model_controller model({});
    model.add_namespace(media.bytes());
    const auto on = open_executor("cpu", 1);
    // 20 sets: no more than seven of the 128 lines fall into one.
    cache_fixture fixture(*on, model, 1, with_directory({.frames = 140}, directory));
    const array_view<u64> words = fixture.words();
    check_report report;
    run_threads(12, [&](u32) {
      for (u64 line = 0; line < 128; ++line) PENSTOCK_CHECK_EQ(report, stamp(64 * line), words[64 * line]);
    });
    fixture.check_at_rest(report);
    expect_clean(report, name_of(directory));
    EXPECT_EQ(128u, fixture.cache().stats(0).fills) << name_of(directory);
    EXPECT_EQ(0u, fixture.cache().stats(0).evictions) << name_of(directory);
  }
}

class directory_choice : public testing::Test {
 protected:
  line_cache make(u64 data, cache_options options, bool writable = false) {
    on_ = open_executor("cpu", 1);
    const u32 space = model_.add_namespace(media_.bytes());
    return line_cache(*on_, {{"data", data, {volume_layout::single, {{&model_, space}}}, writable}}, options);
  }
  std::string refusal(u64 data, cache_options const& options) {
    try {
      make(data, options);
    } catch (error const& refused) {
      EXPECT_EQ(error_kind::bad_input, refused.kind());
      return refused.what();
    }
    return "accepted";
  }

  stamped_media media_{(1 << 26) + 512};
  model_controller model_{{}};
  std::unique_ptr<executor> on_;
};

TEST_F(directory_choice, what_each_costs) {
  u64 metadata_of_direct = 0;
  {
    const line_cache direct = make(1 << 26, {.bytes = 1 << 20, .directory = directory_kind::direct});
    EXPECT_EQ(directory_kind::direct, direct.directory());
    EXPECT_EQ(256u, direct.view().frames);
    EXPECT_EQ((1u << 26) / 4096 * 8, direct.directory_bytes());
    EXPECT_EQ(2_GiB, direct.directory_bytes_per_tib());
    metadata_of_direct = direct.metadata_bytes();
  }
  const line_cache sets = make(1 << 26, {.bytes = 1 << 20, .directory = directory_kind::set_associative});
  EXPECT_EQ(directory_kind::set_associative, sets.directory());
  EXPECT_EQ(252u, sets.view().frames) << "whole sets";
  EXPECT_EQ(36u * 64, sets.directory_bytes());
  EXPECT_EQ(36u * 64 << 14, sets.directory_bytes_per_tib());
  EXPECT_LT(sets.metadata_bytes(), metadata_of_direct);
}

TEST_F(directory_choice, what_commands_on_their_way_need_is_known_beforehand) {
  for (const bool writable : {false, true}) {
    for (cache_options const& options :
         {cache_options{.bytes = 1 << 20}, cache_options{.bytes = 1 << 22, .line_bytes = 512, .queues = 3, .queue_depth = 64},
          cache_options{.bytes = 1 << 20, .bounce = true, .write_back = {.command_bytes = 8192, .commands = 5}}}) {
      const line_cache cache = make(1 << 26, options, writable);
      EXPECT_EQ(cache.transit_bytes(), transit_bytes_for(*on_, options, model_.limits(), writable));
      EXPECT_LT(cache.transit_bytes(), cache.metadata_bytes());
    }
  }
}

TEST_F(directory_choice, is_direct_while_its_entries_are_few_beside_the_cache) {
  const u64 lines = (1 << 20) / 8;
  EXPECT_EQ(directory_kind::direct, make(lines * 512, {.bytes = 1 << 16, .line_bytes = 512}).directory()) << "the first MiB";
  EXPECT_EQ(directory_kind::set_associative, make(lines * 512 + 1, {.bytes = 1 << 16, .line_bytes = 512}).directory());
  EXPECT_EQ(directory_kind::direct, make(lines * 512 + 1, {.bytes = 9 << 20, .line_bytes = 512}).directory()) << "an eighth";
}

TEST_F(directory_choice, says_what_cannot_be) {
  EXPECT_EQ(
      "create a cache: 6 frames: a set-associative cache has at least one set of 7; make it larger, or choose the direct "
      "directory",
      refusal(1 << 20, {.bytes = 6 * 4096, .directory = directory_kind::set_associative}));
  EXPECT_EQ(
      "create a cache: 1099511627776 lines in 1 sets: too many lines for a set to tell apart; make the cache or the lines "
      "larger",
      refusal(1ull << 49, {.bytes = 7 * 512, .line_bytes = 512, .directory = directory_kind::set_associative}));
  EXPECT_EQ("create a cache: 1099511627777 lines: at most 2^40 can be numbered; make the lines larger",
            refusal((1ull << 49) + 1, {.bytes = 7 * 512, .line_bytes = 512}));
}

}  // namespace
}  // namespace penstock::test
