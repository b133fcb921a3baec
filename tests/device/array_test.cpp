#include "device/array_test_body.hpp"

#include "penstock/host/error.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"

#include <deque>

namespace penstock::test {
namespace {

#ifdef PENSTOCK_TSAN
constexpr u32 rounds = 3;
#else
constexpr u32 rounds = 12;
#endif
constexpr everywhere few{.lone_threads = 3, .warps = 2, .partitions = 1};

/// A modelled drive with stamped bytes, and a cache in front of it.
struct stored_bytes {
  explicit stored_bytes(cache_shape shape_of_cache) : shape(shape_of_cache), media(round_up(shape.media_bytes, 512)) {
    model.add_namespace(media.bytes());
    fresh();
  }
  void fresh() {
    fixture.reset();  // the controller's queues are free again
    fixture = std::make_unique<cache_fixture>(*on, model, 1, shape);
  }
  line_cache& cache() { return fixture->cache(); }
  template <class T>
  array_view<T> resident(u64 origin, u64 elements) {
    return {reinterpret_cast<T const*>(media.bytes().data() + origin), elements};
  }

  cache_shape shape;
  stamped_media media;
  model_controller model{{}};
  std::unique_ptr<executor> on = open_executor("cpu", 1);
  std::unique_ptr<cache_fixture> fixture;
};

template <class T>
class array_elements_test : public testing::Test {};
using element_types = testing::Types<u8, u16, u32, u64, wide_element, element12, element24, element16_of_words>;
TYPED_TEST_SUITE(array_elements_test, element_types);

// Elements of 12 and 24 bytes straddle lines; the last line is cut short.
TYPED_TEST(array_elements_test, storage_gives_what_memory_gives) {
  for (const directory_kind directory : both_directories) {
    for (const u64 origin : {u64{0}, 16 + alignof(TypeParam)}) {
      if (origin % alignof(TypeParam) != 0) continue;
      stored_bytes bytes(with_directory({.frames = 8, .line_bytes = 512, .media_bytes = 20000}, directory));
      const u64 elements = (bytes.shape.media_bytes - origin) / sizeof(TypeParam);
      same_elements_body<TypeParam> body{bytes.resident<TypeParam>(origin, elements),
                                         bytes.cache().array<TypeParam>(0, origin, elements), rounds};
      run_everywhere(body, few);
      bytes.cache().check_faults();
    }
  }
}

TYPED_TEST(array_elements_test, elements_are_told_with_their_status) {
  for (const directory_kind directory : both_directories) {
    for (const bool bounce : {false, true}) {
      stored_bytes bytes(with_directory({.frames = 8, .media_bytes = 20000, .bounce = bounce}, directory));
      const u64 elements = bytes.shape.media_bytes / sizeof(TypeParam);
      told_elements_body<TypeParam> body{bytes.resident<TypeParam>(0, elements), bytes.cache().array<TypeParam>(0, 0, elements),
                                         rounds};
      run_everywhere(body, few);
      bytes.cache().check_faults();
    }
  }
}

TYPED_TEST(array_elements_test, an_origin_that_does_not_suit_the_type_is_refused) {
  stored_bytes bytes({});
  if constexpr (alignof(TypeParam) > 1) {
    try {
      bytes.cache().array<TypeParam>(0, alignof(TypeParam) / 2, 1);
      ADD_FAILURE() << "accepted";
    } catch (error const& refused) {
      EXPECT_EQ(error_kind::bad_input, refused.kind());
      EXPECT_EQ("open media: its data starts at byte " + std::to_string(alignof(TypeParam) / 2) + ", which is no multiple of " +
                    std::to_string(alignof(TypeParam)) + ": write it anew with NumPy",
                std::string(refused.what()));
    }
  }
}

TEST(array, more_elements_than_the_dataset_has_are_refused) {
  stored_bytes bytes({.media_bytes = 20000});
  EXPECT_NO_THROW(bytes.cache().array<u64>(0, 0, 2500));
  EXPECT_NO_THROW(bytes.cache().array<u64>(0, 20000, 0));
  EXPECT_THROW(bytes.cache().array<u64>(0, 0, 2501), error);
  EXPECT_THROW(bytes.cache().array<u64>(0, 8, 2500), error);
  EXPECT_THROW(bytes.cache().array<u64>(0, 20008, 0), error);
  EXPECT_THROW(bytes.cache().array<u64>(0, 0, ~0ull / 4), error);
}

class array_test : public testing::TestWithParam<directory_kind> {};
INSTANTIATE_TEST_SUITE_P(directories, array_test, testing::ValuesIn(both_directories),
                         [](auto const& kind) { return name_of(kind.param); });

// A cache without a frame to spare is where references lose their line all the time; in a roomy one they keep it.
TEST_P(array_test, references_follow_their_index) {
  for (const u64 frames : {2u, 128u}) {
    stored_bytes bytes(with_directory({.frames = frames, .media_bytes = 1 << 15}, GetParam()));
    run_everywhere(follow_body<u64>{bytes.resident<u64>(0, 4096), bytes.cache().array<u64>(0, 0, 4096)}, few);
    run_everywhere(follow_body<u16>{bytes.resident<u16>(0, 16384), bytes.cache().array<u16>(0, 0, 16384)},
                   {.lone_threads = 2, .warps = 1, .partitions = 0});
    bytes.cache().check_faults();
  }
}

// All lanes of a block are one group: its masks are wider than a warp's.
TEST_P(array_test, a_block_reads_and_holds_lines) {
  stored_bytes bytes(with_directory({.frames = 128, .media_bytes = 1 << 15}, GetParam()));
  told_elements_body<u64> told{bytes.resident<u64>(0, 4096), bytes.cache().array<u64>(0, 0, 4096), 2};
  run_block(told, 40, test_seed());
  bytes.fresh();
  held_lines_body held{bytes.resident<u64>(0, 4096), bytes.cache().array<u64>(0, 0, 4096)};
  run_block(held, 40, test_seed());
  check_report report;
  bytes.fixture->check_at_rest(report);
  expect_clean(report);
  bytes.cache().check_faults();
}

TEST_P(array_test, runs_are_read_in_pieces) {
  for (const u64 frames : {8u, 128u}) {
    const everywhere waiting = frames == 8 ? for_waiting_threads : few;
    for (const bool bounce : {false, true}) {
      stored_bytes bytes(with_directory({.frames = frames, .media_bytes = 1 << 14, .bounce = bounce}, GetParam()));
      const auto runs = [&]<class T, u32 Length>(runs_body<T, Length>, u64 origin, u64 elements, u32 times) {
        // The words lie on other lines, and there are fewer of them.
        return runs_body<T, Length>{bytes.resident<T>(origin, elements), bytes.cache().array<T>(0, origin, elements),
                                    bytes.resident<u64>(4096 + 32, 1103), bytes.cache().array<u64>(0, 4096 + 32, 1103), times};
      };
      run_everywhere(runs(runs_body<u32>{}, 16, 4089, 4), waiting);
      run_everywhere(runs(runs_body<u64>{}, 16, 1103, 4), waiting);
      // What is not aligned is read element by element.
      run_everywhere(runs(runs_body<u32>{}, 20, 4081, 2), waiting);
      run_everywhere(runs(runs_body<u8>{}, 0, 7001, 3), {.lone_threads = 2, .warps = 1, .partitions = 1});
      // A run of fewer bytes is one piece; of one element, wherever it lies.
      run_everywhere(runs(runs_body<u32, 1>{}, 20, 4081, 4), waiting);
      run_everywhere(runs(runs_body<u32, 2>{}, 16, 4089, 2), waiting);
      run_everywhere(runs(runs_body<u32, 2>{}, 20, 4081, 2), {.lone_threads = 2, .warps = 1, .partitions = 1});
      bytes.cache().check_faults();
    }
  }
}

TEST_P(array_test, a_run_counts_all_of_its_elements) {
  stored_bytes bytes(with_directory({.frames = 128, .media_bytes = 1 << 15}, GetParam()));
  const array_view<u32> words = bytes.cache().array<u32>(0, 0, 8192);
  {
    array_ref<u32> follow(words);
    u32 run[2][4];
    const bool both[2] = {true, true};
    for (u64 i = 0; i < 8192; i += 8) read_runs<false>(lone_thread{}, both, i, 4, runs_of(follow, run));
  }
  const cache_stats stats = bytes.cache().stats(0);
  EXPECT_EQ(64u, stats.misses);
  EXPECT_EQ(64u, stats.hits);
  EXPECT_EQ(4u * 8192, stats.bytes_asked);
}

TEST_P(array_test, spans_hold_each_element_once) {
  for (const u64 frames : {8u, 128u}) {
    const everywhere waiting = frames == 8 ? for_waiting_threads : few;
    for (const bool bounce : {false, true}) {
      stored_bytes bytes(with_directory({.frames = frames, .media_bytes = 1 << 14, .bounce = bounce}, GetParam()));
      run_everywhere(spans_body<u64>{bytes.resident<u64>(0, 1100), bytes.cache().array<u64>(0, 0, 1100), 4}, waiting);
      run_everywhere(spans_body<u8>{bytes.resident<u8>(3, 7000), bytes.cache().array<u8>(0, 3, 7000), 4},
                     {.lone_threads = 2, .warps = 1, .partitions = 1});
      run_everywhere(
          spans_body<wide_element>{bytes.resident<wide_element>(16, 500), bytes.cache().array<wide_element>(0, 16, 500), 4},
          {.lone_threads = 2, .warps = 1, .partitions = 0});
      bytes.cache().check_faults();
    }
  }
}

TEST_P(array_test, a_reference_counts_what_it_reads) {
  // 64 lines of 64 words, and room for all of them in the sets that they fall into.
  stored_bytes bytes(with_directory({.frames = 128, .media_bytes = 1 << 15}, GetParam()));
  const array_view<u64> words = bytes.cache().array<u64>(0, 0, 4096);
  {
    array_ref<u64> follow(words);
    for (u64 i = 0; i < 4096; ++i) ASSERT_EQ(stamp(i), follow[i]);
    EXPECT_EQ(0u, bytes.cache().stats(0).bytes_asked) << "nothing is shared while it reads";
  }
  cache_stats stats = bytes.cache().stats(0);
  EXPECT_EQ(64u, stats.misses);
  EXPECT_EQ(64u, stats.hits) << "one for each line that it moved to";
  EXPECT_EQ(8u * 4096, stats.bytes_asked);
  EXPECT_EQ(64u * 512, stats.bytes_moved);
  {
    array_ref<u64> follow(words);
    for (u64 i = 0; i < 4096; i += 32) ASSERT_EQ(stamp(i), follow[i]);
  }
  stats = bytes.cache().stats(0);
  EXPECT_EQ(64u, stats.misses);
  EXPECT_EQ(128u, stats.hits);
  EXPECT_EQ(0u, stats.retries);
}

TEST_P(array_test, a_pin_counts_one_hit_however_often_it_has_to_begin_again) {
  stored_bytes bytes(with_directory({.frames = 2, .timeout_ns = 5 * one_millisecond_ns}, GetParam()));
  const array_view<u64> words = bytes.cache().array<u64>(0, 0, 4096);
  line_cache_view const& view = bytes.cache().view();
  const lone_thread g;
  std::deque<pinned_line<lone_thread>> held;  // all frames, so that a search finds none
  for (u64 line = 0; line < view.frames; ++line) {
    held.emplace_back(g, words.reader(), line_id{line});
    ASSERT_EQ(status{}, held.back().error());
  }
  check_report report;
  run_emulated_warp(0b11, [&](emulated_warp const& two) {
    // Lane 0 finds its line; lane 1 finds no frame, so both give back and begin again until they give up.
    const auto both = pin(two, words, two.rank() == 0 ? 0 : 64 * view.frames);
    PENSTOCK_CHECK_EQ(report, make_status(failure::no_frame), both.error());
  });
  expect_clean(report);
  EXPECT_EQ(1u, bytes.cache().stats(0).hits);
  EXPECT_EQ(1u, entry::pins(view.directory.find(line_id{0}).word)) << "the first one's";
}

// A whole warp pins a line of `direct` before it has looked at it.
TEST_P(array_test, a_pin_of_a_line_that_is_not_there_is_given_back) {
  stored_bytes bytes(with_directory({.frames = 64}, GetParam()));
  const array_view<u64> words = bytes.cache().array<u64>(0, 0, 4096);
  line_cache_view const& view = bytes.cache().view();
  check_report report;
  run_emulated_warp(~0u, [&](emulated_warp const& g) {
    access_tally tally;
    for (u32 round = 0; round < 2; ++round) {
      for (u64 line = 0; line < 8; ++line) {
        const auto held = pin(g, words, 64 * line, tally);
        PENSTOCK_CHECK_EQ(report, status{}, held.error());
        PENSTOCK_CHECK_EQ(report, stamp(64 * line + 5), held.template load<u64>(5 * sizeof(u64)));
      }
    }
    tally.add_to(words.reader().counters, 0);
  });
  expect_clean(report);
  EXPECT_EQ(8u, bytes.cache().stats(0).misses);
  EXPECT_EQ(8u, bytes.cache().stats(0).hits) << "of the second round";
  for (u64 line = 0; line < 8; ++line) EXPECT_EQ(0u, entry::pins(view.directory.find(line_id{line}).word)) << line;
}

class array_lines_test : public testing::TestWithParam<cache_shape> {};

// Lines of more than two pages need PRP lists; the last line is cut short inside of a block, of a page, of a list.
TEST_P(array_lines_test, every_line_size_holds_its_bytes) {
  stored_bytes bytes(GetParam());
  const u64 elements = bytes.shape.media_bytes / 8;
  const array_view<u64> resident = bytes.resident<u64>(0, elements);
  run_everywhere(held_lines_body{resident, bytes.cache().array<u64>(0, 0, elements)},
                 {.lone_threads = 3, .warps = 1, .partitions = 1});
  bytes.fresh();
  run_everywhere(same_elements_body<u64>{resident, bytes.cache().array<u64>(0, 0, elements), 4},
                 {.lone_threads = 3, .warps = 1, .partitions = 0});
  check_report report;
  bytes.fixture->check_at_rest(report);
  expect_clean(report);
  bytes.cache().check_faults();
}

std::vector<cache_shape> line_sizes() {
  std::vector<cache_shape> shapes;
  for (u64 line = 512; line <= 65536; line *= 2) {
    for (const bool bounce : {false, true}) {
      const u64 cut = line == 512 ? 0 : line / 2 + 8;
      for (const directory_kind kind : both_directories) {
        shapes.push_back(
            with_directory({.frames = 40, .line_bytes = line, .media_bytes = 4 * line + cut, .bounce = bounce}, kind));
        shapes.push_back(with_directory(
            {.frames = 3, .line_bytes = line, .media_bytes = 9 * line + 24, .depth = 4, .bounce = bounce}, kind));
      }
    }
  }
  return shapes;
}
INSTANTIATE_TEST_SUITE_P(line_sizes, array_lines_test, testing::ValuesIn(line_sizes()), [](auto const& shape) {
  cache_shape const& s = shape.param;
  return name_of(s.directory) + "_lines_of_" + std::to_string(s.line_bytes) + "_frames_" + std::to_string(s.frames) +
         (s.bounce ? "_bounce" : "");
});

TEST_P(array_test, arrays_in_one_cache_are_counted_apart) {
  stamped_media first(20000), second(1 << 15);
  model_controller model({});
  model.add_namespace(std::span(first.bytes()).first(19968));
  model.add_namespace(second.bytes());
  const auto on = open_executor("cpu", 1);
  cache_options options;
  options.bytes = 8 * 512;
  options.line_bytes = 512;
  options.directory = GetParam();
  line_cache cache(
      *on,
      {{"first", 19968, {volume_layout::single, {{&model, 1}}}}, {"second", 1 << 15, {volume_layout::single, {{&model, 2}}}}},
      options);
  const array_view<u64> a = cache.array<u64>(0, 0, 2496);
  const array_view<u64> b = cache.array<u64>(1, 0, 4096);
  for (u64 i = 0; i < 2496; i += 64) ASSERT_EQ(stamp(i), a[i]);
  cache_stats of_a = cache.stats(0), of_b = cache.stats(1);
  EXPECT_EQ(39u, of_a.misses);
  EXPECT_EQ(39u * 512, of_a.bytes_moved);
  EXPECT_EQ(39u - cache.view().frames, of_a.evictions);
  EXPECT_EQ(0u, of_b.misses + of_b.fills + of_b.bytes_moved + of_b.bytes_asked + of_b.evictions);
  {
    array_ref<u64> follow_a(a), follow_b(b);
    // In turn, so that each takes frames of the other; lines that lie side by side in the cache's line space do not mix.
    for (u64 i = 0; i < 4096; ++i) {
      ASSERT_EQ(stamp(i), follow_b[i]);
      if (i < 4096 - 2496) continue;
      ASSERT_EQ(stamp(4095 - i), follow_a[4095 - i]);
    }
  }
  of_a = cache.stats(0), of_b = cache.stats(1);
  EXPECT_EQ(8u * 2496, of_a.bytes_asked);
  EXPECT_EQ(8u * 4096, of_b.bytes_asked);
  EXPECT_EQ(of_a.fills * 512, of_a.bytes_moved);
  EXPECT_EQ(of_b.fills * 512, of_b.bytes_moved);
  u64 commands = 0;
  for (auto const& q : cache.queues()) commands += q.commands;
  EXPECT_EQ(commands, of_a.fills + of_b.fills);
  EXPECT_EQ(of_a.fills + of_b.fills - cache.view().frames, of_a.evictions + of_b.evictions);
  cache.check_faults();
}

}  // namespace
}  // namespace penstock::test
