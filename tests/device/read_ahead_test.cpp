#include "device/read_ahead_test_body.hpp"

#include "support/cache_fixture.hpp"
#include "support/faulty_cache.hpp"
#include "support/run_everywhere.hpp"

#include <algorithm>

namespace penstock::test {
namespace {

constexpr u64 line_words = 64, lines = 2048;

/// Into a cache with room for everything.
struct reads_in_order_once : on_fresh_cache<reads_in_order_body> {
  void verify(check_report& report, run_shape shape_of_run) {
    on_fresh_cache::verify(report, shape_of_run);
    const cache_stats stats = fixture->cache().stats(0);
    PENSTOCK_CHECK_EQ(report, shape.media_bytes / shape.line_bytes, stats.fills);
    PENSTOCK_CHECK(report, stats.prefetches > 0);
  }
};

/// A cache of half of the lines, or of as many as told, from which a lone thread reads.
class read_ahead_test : public testing::TestWithParam<directory_kind> {
 protected:
  void make(u64 frames = lines / 2, u64 read_ahead_bytes = 128 * 512, ablations without = {}) {
    cache_shape shape{.frames = frames, .media_bytes = media_.bytes().size(), .depth = 512, .without = without};
    shape.read_ahead_bytes = read_ahead_bytes;
    fixture_.reset();
    fixture_ = std::make_unique<cache_fixture>(*on_, model_, 1, with_directory(shape, GetParam()));
    words_ = fixture_->words();
  }
  void read(u64 line) { EXPECT_EQ(stamp(line * line_words), words_[line * line_words]) << "line " << line; }
  cache_stats stats() { return fixture_->cache().stats(0); }
  line_state state_of(u64 line) { return fixture_->cache().view().directory.find(line_id{line}).state(); }

  stamped_media media_{lines * line_words * 8};
  model_controller model_{shuffled()};
  const u32 space_ = model_.add_namespace(media_.bytes());
  std::unique_ptr<executor> on_ = open_executor("cpu", 1);
  std::unique_ptr<cache_fixture> fixture_;
  array_view<u64> words_;
};
PENSTOCK_UNDER_BOTH_DIRECTORIES(read_ahead_test);

// Blocks have eight lines, and a lone thread looks ahead at every fourth: here at line 32 first, for what begins with line 40.
TEST_P(read_ahead_test, who_reads_in_order_misses_the_first_lines_only) {
  make();
  for (u64 line = 0; line < lines; ++line) read(line);
  EXPECT_LE(stats().misses, GetParam() == directory_kind::direct ? 80u : 160u);
  EXPECT_LE(stats().fills, lines + 80) << "lines were brought in twice";
}

// The window is 16 blocks long; four are asked for from the nearest that is missing, and four from a far one.
TEST_P(read_ahead_test, blocks_of_the_window_are_asked_for_when_one_is_begun) {
  make();
  const auto expect_there = [&](u64 first, u64 last) {
    for (u64 line = first; line < last; ++line) EXPECT_NE(line_state::empty, state_of(line)) << "line " << line;
    EXPECT_EQ(line_state::empty, state_of(last));
  };
  for (u64 line = 0; line < 32; ++line) read(line);
  EXPECT_EQ(0u, stats().prefetches);
  read(32);
  expect_there(40, 72);
  expect_there(96, 128);
  EXPECT_EQ(64u, stats().prefetches);
  for (u64 line = 33; line < 64; ++line) read(line);
  EXPECT_EQ(64u, stats().prefetches);
  read(64);
  expect_there(64, 160);
  for (u64 line = 65; line <= 96; ++line) read(line);
  expect_there(96, 224);
  EXPECT_EQ(184u, stats().prefetches);
  for (u64 line = 97; line < 128; ++line) read(line);
  EXPECT_EQ(184u, stats().prefetches);
}

TEST_P(read_ahead_test, a_gap_in_the_lines_before_ends_it) {
  make();
  for (u64 line = 0; line <= 64; ++line) {
    if (line % 16 != 7) read(line);
  }
  EXPECT_EQ(0u, stats().prefetches);
}

TEST_P(read_ahead_test, who_jumps_about_or_goes_back_gets_nothing_ahead) {
  make();
  for (u64 k = 0; k < 2 * lines; ++k) read(random_word(7, 0, k) % lines);
  EXPECT_EQ(0u, stats().prefetches);
  make();
  for (u64 line = lines; line-- > 0;) read(line);
  EXPECT_EQ(0u, stats().prefetches);
}

TEST_P(read_ahead_test, it_is_off_where_that_is_asked_or_the_cache_is_too_small) {
  make(lines / 2, 0);
  for (u64 line = 0; line < lines; ++line) read(line);
  EXPECT_EQ(0u, stats().prefetches);
  make(200);
  for (u64 line = 0; line < lines; ++line) read(line);
  EXPECT_EQ(0u, stats().prefetches);
  make(lines / 2, 128 * 512, {.cache = true});
  for (u64 line = 0; line < 256; ++line) read(line);
  EXPECT_EQ(0u, stats().prefetches);
}

// A line that lies there is read, and no line given up for what would not come.
TEST_P(read_ahead_test, a_dataset_that_has_failed_is_not_read_ahead_of) {
  make();
  for (u64 line = 0; line < 32; ++line) read(line);
  words_.prefetch(32 * line_words);
  fixture_->settle();
  dataset_health& health = *fixture_->cache().view().datasets[0].health;
  device_ref<u32>(health.verdict).store(pack(media_error), relaxed);
  read(32);
  EXPECT_EQ(1u, stats().prefetches);
  device_ref<u32>(health.verdict).store(0, relaxed);
  words_.prefetch(64 * line_words);
  fixture_->settle();
  for (u64 line = 33; line < 64; ++line) read(line);
  read(64);
  EXPECT_EQ(66u, stats().prefetches);
}

// The other half is for those who know what they will need, and for what a reader needs next.
TEST_P(read_ahead_test, far_blocks_take_no_more_than_half_of_what_may_be_in_flight) {
  make();
  line_cache_view const& view = fixture_->cache().view();
  const auto add = [&](u32 more) {
    for (u32 s = 0; s < view.prefetch_shards; ++s) device_ref<u32>(view.prefetches_in_flight[s]).fetch_add(more, relaxed);
  };
  for (u64 line = 0; line < 32; ++line) read(line);
  const u32 others = view.prefetch_limit / 2 + 1;
  add(others);
  read(32);
  EXPECT_EQ(32u, stats().prefetches);
  for (u64 line = 33; line <= 64; ++line) read(line);
  EXPECT_EQ(64u, stats().prefetches);
  add(-others);
  for (u64 line = 65; line <= 96; ++line) read(line);
  EXPECT_EQ(128u, stats().prefetches);
}

// Four of 8 KiB are a block of 32 KiB, and one of 32 or of 64 KiB is one.
TEST_P(read_ahead_test, long_lines_are_in_blocks_of_fewer) {
  for (const u64 bytes : {8192u, 32768u, 65536u}) {
    const u64 block = std::max<u64>(1, 32768 / bytes), count = 160, words = bytes / 8;
    stamped_media media(count * bytes);
    model_controller model(shuffled());
    model.add_namespace(media.bytes());
    cache_shape shape{.frames = 2 * count, .line_bytes = bytes, .media_bytes = media.bytes().size(), .depth = 512};
    shape.read_ahead_bytes = 16 * bytes;
    cache_fixture fixture(*on_, model, 1, with_directory(shape, GetParam()));
    const array_view<u64> numbers = fixture.words();
    const auto read = [&](u64 line) { EXPECT_EQ(stamp(line * words), numbers[line * words]) << line << " of " << bytes; };
    for (u64 line = 0; line < 16; ++line) read(line);
    EXPECT_EQ(0u, fixture.cache().stats(0).prefetches);
    read(16);
    EXPECT_EQ(block == 4 ? 16u : 8u, fixture.cache().stats(0).prefetches) << bytes;
    for (u64 line = 17; line < count; ++line) read(line);
    EXPECT_EQ(count, fixture.cache().stats(0).fills) << bytes;
    EXPECT_EQ(16 + block, fixture.cache().stats(0).misses) << bytes;
  }
}

// Two datasets in one cache, the first of which ends within a block.
TEST_P(read_ahead_test, it_stays_within_its_dataset) {
  cache_options options;
  options.bytes = 8192 * 512;
  options.line_bytes = 512;
  options.queues = 1;
  options.queue_depth = 512;
  options.directory = GetParam();
  options.read_ahead_bytes = 32 * 512;
  const volume_spec volume{volume_layout::single, {{&model_, 1}}};
  line_cache cache(*on_, {{"first", 1012 * 512, volume}, {"second", 1040 * 512, volume}}, options);
  const auto first = cache.array<u64>(0, 0, 1012 * line_words), second = cache.array<u64>(1, 0, 1040 * line_words);
  for (u64 line = 0; line < 1012; ++line) EXPECT_EQ(stamp(line * line_words), first[line * line_words]);
  EXPECT_EQ(1012u, cache.stats(0).fills);
  EXPECT_LT(800u, cache.stats(0).prefetches);
  EXPECT_EQ(0u, cache.stats(1).fills);
  for (u64 line = 0; line < 44; ++line) EXPECT_EQ(stamp(line * line_words), second[line * line_words]);
  EXPECT_EQ(0u, cache.stats(1).prefetches) << "the lines before are the other dataset's";
  for (u64 line = 44; line < 1040; ++line) EXPECT_EQ(stamp(line * line_words), second[line * line_words]);
  EXPECT_EQ(1040u, cache.stats(1).fills);
  EXPECT_LT(800u, cache.stats(1).prefetches);
}

// However many read together, and in whatever groups: into a cache with room for everything each line comes once.
TEST_P(read_ahead_test, groups_that_read_together_bring_each_line_in_once) {
  stamped_media media(1 << 18);
  model_controller model(shuffled());
  model.add_namespace(media.bytes());
  for (const bool bounce : {false, true}) {
    reads_in_order_once body;
    body.on = on_.get();
    body.owner = &model;
    cache_shape shape{.frames = 1 << 12, .media_bytes = 1 << 18, .depth = 128, .bounce = bounce};
    shape.read_ahead_bytes = 64 * 512;
    body.shape = with_directory(shape, GetParam());
    run_everywhere(body, {.lone_threads = 3, .warps = 1, .partitions = 1});
  }
}

}  // namespace
}  // namespace penstock::test
