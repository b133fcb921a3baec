#include "device/own_lines_test_body.hpp"

#include "penstock/host/error.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"

#include <vector>

namespace penstock::test {
namespace {

#ifdef PENSTOCK_TSAN
constexpr u32 rounds = 8;
#else
constexpr u32 rounds = 20;
#endif
constexpr everywhere few{.lone_threads = 3, .warps = 2, .partitions = 1};
constexpr u64 words = 2499;  // the last line is cut short, and so are its last 16 bytes

cache_options options_of(directory_kind directory) {
  return {.bytes = u64{14} * 512, .line_bytes = 512, .directory = directory};
}

dataset_spec made_words() {
  dataset_spec spec{"made words", words * sizeof(u64), {}};
  spec.own_fills = true;
  return spec;
}

using made_view = filled_cache_view<stamped_lines>;

TEST(own_fills, give_every_element_and_are_made_by_those_that_miss) {
  for (const directory_kind directory : both_directories) {
    const auto on = open_executor("cpu", 1);
    u32 fills = 0;
    line_cache cache(*on, {made_words()}, options_of(directory));
    const made_view view{cache.view(), {.fills = &fills}};
    run_everywhere(own_elements_body<made_view>{cache.array_through<u64>(&view, 0, 0, words), ~0ull, rounds}, few);
    cache.check_faults();
    const cache_stats stats = cache.stats(0);
    EXPECT_GT(stats.evictions, 0u);
    EXPECT_EQ(stats.fills, fills);
    EXPECT_EQ(stats.prefetches + stats.errors, 0u);
    EXPECT_TRUE(cache.queues().empty());
  }
}

TEST(own_fills, fail_the_readers_of_their_line_alone) {
  for (const directory_kind directory : both_directories) {
    const auto on = open_executor("cpu", 1);
    u32 fills = 0;
    line_cache cache(*on, {made_words()}, options_of(directory));
    const made_view view{cache.view(), {.bad = 700, .fills = &fills}};
    const auto array = cache.array_through<u64>(&view, 0, 0, words);
    EXPECT_EQ(array[700 / 64 * 64 - 1], stamp(700 / 64 * 64 - 1));
    cache.check_faults();
    EXPECT_EQ(array[701], 0u);
    try {
      cache.check_faults();
      ADD_FAILURE() << "no fault was latched";
    } catch (error const& fault) {
      EXPECT_NE(std::string(fault.what()).find("made words at byte 5608"), std::string::npos) << fault.what();
    }
    run_everywhere(own_elements_body<made_view>{array, 700, 4}, few);
    EXPECT_GT(cache.stats(0).errors, 0u);
  }
}

TEST(own_policy, chooses_the_victims_of_its_readers) {
  const auto on = open_executor("cpu", 1);
  std::vector<u64> memory(round_up(words, 2));
  for (u64 w = 0; w < words; ++w) memory[w] = stamp(w);
  const dataset_spec spec{"memory", words * sizeof(u64), {}, false, memory.data()};
  line_cache cache(*on, {spec}, options_of(directory_kind::direct));
  u64 turns = 0;
  const auto view = cache.view().with(turn_policy{&turns, cache.view().frames});
  using own_view = std::remove_const_t<decltype(view)>;
  const auto own = cache.array_through<u64>(&view, 0, 0, words);
  run_everywhere(own_elements_body<own_view>{own, ~0ull, rounds}, few);
  cache.check_faults();
  EXPECT_GE(turns, cache.stats(0).evictions);
  EXPECT_GT(cache.stats(0).evictions, 0u);
  // Beside it, readers by CLOCK, of the same lines.
  const array_view<u64> plain = cache.array<u64>(0, 0, words);
  const u64 before = turns;
  for (u64 w = 0; w < words; ++w) ASSERT_EQ(plain[w], stamp(w));
  EXPECT_EQ(turns, before);
}

template <class Open>
void expect_refused(std::string const& why, Open const& open) {
  try {
    open();
    ADD_FAILURE() << "accepted";
  } catch (error const& refusal) {
    EXPECT_NE(std::string(refusal.what()).find(why), std::string::npos) << refusal.what();
  }
}

TEST(own_fills, are_for_datasets_that_lie_nowhere) {
  const auto on = open_executor("cpu", 1);
  alignas(16) static const u64 memory[4]{};
  dataset_spec both = made_words();
  both.memory = memory;
  expect_refused("neither volume nor memory", [&] { const line_cache cache(*on, {both}, {}); });
  const line_cache cache(*on, {made_words()}, options_of(directory_kind::set_associative));
  expect_refused("read it by array_through", [&] { cache.array<u64>(0, 0, words); });
  u64 turns = 0;
  const filled_cache_view<stamped_lines, turn_policy> view{cache.view().with(turn_policy{&turns, 14}), {}};
  expect_refused("ask for directory_kind::direct", [&] { cache.array_through<u64>(&view, 0, 0, words); });
  expect_refused("need more than its", [&] {
    const made_view by_clock{cache.view(), {}};
    cache.array_through<u64>(&by_clock, 0, 8, words);
  });
}

}  // namespace
}  // namespace penstock::test
