#include "device/ablation_test_body.hpp"

#include "penstock/array/array_ref.hpp"
#include "support/faulty_cache.hpp"

namespace penstock::test {
namespace {

using ablation_test = faulty_cache;
PENSTOCK_UNDER_BOTH_DIRECTORIES(ablation_test);

struct ablated_reads : on_fresh_cache<ablated_reads_body> {
  void verify(check_report& report, run_shape run) {
    const cache_stats stats = fixture->cache().stats(0);
    if (shape.without.cache) PENSTOCK_CHECK_EQ(report, u64{run.threads} * rounds * accesses_in_round, stats.fills);
    if (!shape.without.cache) fixture->check_at_rest(report);
  }
};

TEST_P(ablation_test, the_bytes_are_the_same) {
  for (const ablations without : {ablations{.cache = true}, ablations{.coalescing = true}, ablations{.validation = true},
                                  ablations{.coalescing = true, .validation = true}}) {
    for (const u64 frames : {7u, 140u}) {
      ablated_reads body;
      body.on = on_.get();
      body.owner = &controller_;
      body.shape = with_directory({.frames = frames, .without = without}, GetParam());
      body.rounds = 3;
      run_everywhere(body, {.lone_threads = 3, .warps = 1, .partitions = 1});
    }
  }
}

TEST_P(ablation_test, without_a_cache_every_access_is_a_command) {
  make({.frames = 140, .without = {.cache = true}});
  EXPECT_EQ(directory_kind::set_associative, cache().directory()) << "whatever was asked";
  for (u64 k = 1; k <= 5; ++k) {
    EXPECT_EQ(stamp(7), words_[7]);
    EXPECT_EQ(k, cache().stats(0).fills);
  }
  check_report report;
  run_emulated_warp(0xffffffffu, [&](emulated_warp const& g) {
    array_ref<u64> follow(words_);
    PENSTOCK_CHECK_EQ(report, stamp(7), follow.read(g, true, 7));
    PENSTOCK_CHECK_EQ(report, stamp(8), follow.read(g, true, 8));
  });
  expect_clean(report);
  cache_stats stats = cache().stats(0);
  EXPECT_EQ(5u + 2 * 32, stats.fills);
  EXPECT_EQ(stats.fills, stats.misses);
  EXPECT_EQ(0u, stats.hits + stats.joins + stats.prefetches + stats.evictions);
  // Commands of one line side by side: none waits for another's.
  controller_.hold_all();
  const u64 before = controller_.fetched();
  run_threads(3, [&](u32 i) {
    if (i != 0) {
      PENSTOCK_CHECK_EQ(report, stamp(9), words_[9]);
      return;
    }
    PENSTOCK_CHECK(report, wait_until([&] { return controller_.fetched() == before + 2; }));
    controller_.serve_all();
  });
  expect_clean(report);
  EXPECT_EQ(status{}, pin_and_release(3));
  words_.prefetch(4);
  (void)words_.read_async(4);
  stats = cache().stats(0);
  EXPECT_EQ(5u + 2 * 32 + 2 + 1, stats.fills) << "nothing comes ahead of need";
}

/// A counter's sum, while others count.
u64 count_of(line_cache const& cache, counter which) {
  counter_set_view const& counters = cache.view().datasets[0].counters;
  u64 sum = 0;
  for (u32 s = 0; s < counters.shard_count; ++s) {
    sum += device_ref<u64>(counters.shards[s].values[static_cast<u32>(which)]).load(relaxed);
  }
  return sum;
}

/// 32 lanes that want one line while it is on its way. Returns how many joined another's fill.
u64 joins_of_a_warp(line_cache& cache, array_view<u64> const& words, scripted_controller& controller, u64 wanted) {
  controller.hold_all();
  check_report report;
  run_threads(2, [&](u32 i) {
    if (i == 0) {
      run_emulated_warp(0xffffffffu, [&](emulated_warp const& g) {
        array_ref<u64> follow(words);
        PENSTOCK_CHECK_EQ(report, stamp(7), follow.read(g, true, 7));
      });
      return;
    }
    backoff patience(far_off_ns);
    while ((count_of(cache, counter::fills) == 0 || count_of(cache, counter::joins) < wanted) && patience.pause()) {}
    controller.serve_all();
  });
  expect_clean(report);
  EXPECT_EQ(1u, cache.stats(0).fills);
  return cache.stats(0).joins;
}

TEST_P(ablation_test, without_coalescing_every_lane_goes_alone) {
  make({.frames = 140});
  EXPECT_EQ(0u, joins_of_a_warp(cache(), words_, controller_, 0));
  make({.frames = 140, .without = {.coalescing = true}});
  EXPECT_EQ(31u, joins_of_a_warp(cache(), words_, controller_, 31));
  check_report report;
  run_emulated_warp(0b1111, [&](emulated_warp const& g) {
    const auto held = pin(g, words_, line_words);
    PENSTOCK_CHECK_EQ(report, status{}, held.error());
    g.sync();
    PENSTOCK_CHECK_EQ(report, 4, entry::pins(entry_at(1)));
    g.sync();
  });
  expect_clean(report);
  expect_at_rest();
}

// A line with all the pins that it takes tells who needs one.
TEST_P(ablation_test, without_validation_every_access_takes_a_pin) {
  for (const bool validation : {true, false}) {
    make({.frames = 14, .timeout_ns = 5 * one_millisecond_ns, .without = {.validation = !validation}});
    EXPECT_EQ(stamp(1), words_[1]);
    EXPECT_EQ(stamp(1), words_[1]);
    const u64 all = entry::one_pin * entry::most_pins;
    device_ref<u64>(*find(0).entry).fetch_add(all, relaxed);
    EXPECT_EQ(validation ? stamp(1) : 0, words_[1]);
    EXPECT_EQ(validation, fault_sentence().empty());
    device_ref<u64>(*find(0).entry).fetch_sub(all, relaxed);
    EXPECT_EQ(stamp(1), words_[1]);
    EXPECT_EQ(1u, cache().stats(0).fills);
  }
}

}  // namespace
}  // namespace penstock::test
