#include "device/advice_test_body.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"

#include <functional>
#include <limits>

namespace penstock::test {
namespace {

constexpr u64 line_bytes = 512;
constexpr u64 line_words = line_bytes / sizeof(u64);
constexpr u64 frames = 140;  // 20 sets
constexpr u64 hot_lines = 40;
constexpr u64 stream_lines = 2000;

/// Two arrays in one cache: a small one that is read again and again, a large one that passes by.
class advice_test : public testing::TestWithParam<directory_kind> {
 protected:
  advice_test() {
    model_.add_namespace(small_.bytes());
    model_.add_namespace(large_.bytes());
    fresh();
  }

  void fresh() {
    cache_.reset();
    cache_options options;
    options.bytes = frames * line_bytes;
    options.line_bytes = line_bytes;
    options.directory = GetParam();
    cache_ = std::make_unique<line_cache>(
        *on_,
        std::vector<dataset_spec>{{"again", small_.bytes().size(), {volume_layout::single, {{&model_, 1}}}},
                                  {"once", large_.bytes().size(), {volume_layout::single, {{&model_, 2}}}}},
        options);
    again_ = cache_->array<u64>(0, 0, hot_lines * line_words);
    once_ = cache_->array<u64>(1, 0, stream_lines * line_words);
  }

  void read_again() {
    for (u64 line = 0; line < hot_lines; ++line) {
      for (u64 k = 0; k < 3; ++k) ASSERT_EQ(stamp(line * line_words + k), again_[line * line_words + k]);
    }
  }
  void pass(u64 first, u64 lines) {
    for (u64 line = first; line < first + lines; ++line) {
      for (u64 k = 0; k < 3; ++k) ASSERT_EQ(stamp(line * line_words + k), once_[line * line_words + k]);
    }
  }

  /// Lines of the small array that had to be brought in again while the large one passed, 200 lines at a time.
  u64 lost() {
    read_again();
    const u64 before = cache_->stats(0).fills;
    for (u64 first = 0; first < stream_lines; first += 200) {
      pass(first, 200);
      read_again();
    }
    return cache_->stats(0).fills - before;
  }

  u64 frames_of(u32 dataset) {
    line_cache_view const& view = cache_->view();
    dataset_view const& data = view.datasets[dataset];
    u64 held = 0;
    for (u64 line = data.first_line; line < data.first_line + data.lines; ++line) {
      held += view.directory.find(line_id{line}).state() != line_state::empty;
    }
    return held;
  }

  stamped_media small_{hot_lines * line_bytes};
  stamped_media large_{stream_lines * line_bytes};
  model_controller model_{{}};
  std::unique_ptr<executor> on_ = open_executor("cpu", 1);
  std::unique_ptr<line_cache> cache_;
  array_view<u64> again_, once_;
};
INSTANTIATE_TEST_SUITE_P(directories, advice_test, testing::ValuesIn(both_directories),
                         [](auto const& kind) { return name_of(kind.param); });

TEST_P(advice_test, what_is_kept_stays_while_a_stream_passes) {
  constexpr u64 reads = 10 * hot_lines;
  EXPECT_GT(lost(), reads / 2) << "nothing is advised";
  fresh();
  cache_->advise(0, advice::keep);
  EXPECT_LT(lost(), reads / 20);
  fresh();
  cache_->advise(1, advice::stream);
  EXPECT_LT(lost(), reads / 20);
  fresh();
  cache_->advise(0, advice::keep);
  cache_->advise(1, advice::stream);
  EXPECT_EQ(0u, lost());
  cache_->advise(0, advice::normal);
  cache_->advise(1, advice::normal);
  EXPECT_GT(lost(), reads / 2) << "advice can be taken back";
}

// It is a preference, not a claim: who asks is served, also where nothing else is left.
TEST_P(advice_test, what_is_kept_gives_way_where_nothing_else_is_left) {
  cache_->advise(1, advice::keep);
  pass(0, 10 * frames);
  EXPECT_LT(frames * 9 / 10, frames_of(1));
  read_again();
  pass(0, frames);
  read_again();
  EXPECT_EQ(0u, cache_->stats(0).errors + cache_->stats(1).errors);
  cache_->check_faults();
}

// A stream in a cache full of what is kept takes few frames from it: at most one way of a set, about one frame in 32.
TEST_P(advice_test, a_stream_takes_few_frames_from_what_is_kept) {
  cache_->advise(1, advice::keep);
  pass(0, 10 * frames);
  cache_->advise(0, advice::stream);
  const u64 before = frames_of(1);
  for (u32 round = 0; round < 20; ++round) read_again();
  EXPECT_LE(before - frames_of(1), GetParam() == directory_kind::direct ? frames / 16 : frames / set_ways);
}

TEST_P(advice_test, a_share_bounds_the_frames_of_an_array) {
  const bool direct = GetParam() == directory_kind::direct;
  cache_->limit_share(1, 0.3);
  const u64 most = direct ? 42 : 2 * frames / set_ways;
  pass(0, stream_lines / 2);
  EXPECT_EQ(most, frames_of(1));
  read_again();
  const u64 before = cache_->stats(0).fills;
  pass(stream_lines / 2, stream_lines / 2);
  read_again();
  EXPECT_LE(cache_->stats(0).fills - before, direct ? 0 : hot_lines / 2) << "frames beyond its part are left to others";
  EXPECT_LE(frames_of(1), most);
  cache_->limit_share(1, 1);
  pass(0, 10 * frames);
  EXPECT_LT(most, frames_of(1));
  cache_->check_faults();
}

TEST_P(advice_test, a_share_without_a_frame_is_refused) {
  for (const double share : {0.0, -1.0, 1.1, 1e-9, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(cache_->limit_share(1, share), error);
  }
  const bool direct = GetParam() == directory_kind::direct;
  if (direct) cache_->limit_share(1, 0.01);
  try {
    cache_->limit_share(1, 0.004);
    ADD_FAILURE() << "accepted";
  } catch (error const& refused) {
    EXPECT_EQ(error_kind::bad_input, refused.kind());
    EXPECT_EQ(direct ? "limit once: a share of 0.004000 of the cache: it takes from 0.007143 to 1"
                     : "limit once: a share of 0.004000 of the cache: it takes from 0.142857 to 1; the direct directory has "
                       "smaller ones",
              std::string(refused.what()));
  }
}

struct advised_body : passing_stream_body {
  std::function<void(passing_stream_body&)> fresh;
  std::function<void(check_report&)> check;

  void prepare(run_shape) { fresh(*this); }
  void verify(check_report& report, run_shape) const { check(report); }
};

// Threads that take fresh frames and victims side by side, one array bound to its part: no frame is lost, none is held twice.
TEST_P(advice_test, many_threads_get_their_bytes_and_lose_no_frame) {
  advised_body body;
  body.line_words = line_words;
  body.rounds = 4;
  body.fresh = [&](passing_stream_body& prepared) {
    fresh();
    cache_->advise(0, advice::keep);
    cache_->advise(1, advice::stream);
    cache_->limit_share(1, 0.5);
    prepared.again = again_;
    prepared.once = once_;
  };
  body.check = [&](check_report& report) {
    PENSTOCK_CHECK(report, frames_of(1) <= frames / 2);
    pass(0, frames);
    cache_->limit_share(1, 1);
    cache_->advise(0, advice::normal);
    pass(0, stream_lines);
    PENSTOCK_CHECK_EQ(report, frames, frames_of(0) + frames_of(1));
    cache_->check_faults();
  };
  run_everywhere(body, {.lone_threads = 4, .warps = 1, .partitions = 1});
}

}  // namespace
}  // namespace penstock::test
