// What the lanes of a warp write together: each is told its own outcome, and each run goes to the drive that has its lines.
#include "penstock/write_back/flush.hpp"
#include "support/emulated_warp.hpp"
#include "support/faulty_cache.hpp"

namespace penstock::test {
namespace {

class write_warp_test : public faulty_cache {
 protected:
  static constexpr u64 line_bytes = 512, stripe_lines = 4;
  static u64 value(u64 word) { return ~stamp(word); }

  /// A cache over two drives that writes runs of so many lines, and none of its own accord.
  line_cache over(volume_layout layout, scripted_controller (&drives)[2], u64 run_lines, u64 timeout_ns) const {
    return line_cache(
        *on_, {{"both", 64 * line_bytes, {layout, {{&drives[0], 1}, {&drives[1], 1}}, stripe_lines * line_bytes}, true}},
        {.bytes = 140 * line_bytes,
         .line_bytes = line_bytes,
         .queues = 2,
         .timeout_ns = timeout_ns,
         .directory = GetParam(),
         .write_back = {.most_dirty = 1, .command_bytes = run_lines * line_bytes, .commands = 32}});
  }
  /// Where word `word` of a striped dataset lies on its drive, and which drive that is.
  static u64 drive_of(u64 word) { return word / line_words / stripe_lines % 2; }
  static u64 place_of(u64 word) {
    const u64 words = stripe_lines * line_words;
    return word / words / 2 * words + word % words;
  }

  stamped_media media_a_{1 << 15}, media_b_{1 << 15};
};
PENSTOCK_UNDER_BOTH_DIRECTORIES(write_warp_test);

// Some lanes want nothing, some cover their line and need no fill, one is beyond the end; all others need a fill that fails.
TEST_P(write_warp_test, each_lane_is_told_its_own_status) {
  for (const u32 frames : {3u, 7u, 28u, 112u}) {
    if (!direct() && frames % set_ways != 0) continue;
    make({.frames = frames, .media_bytes = media_.size(), .writable = true});
    const writable_view<u64> out = fixture_->writable();
    controller_.fail_all(nvme::code::unrecovered_read_error);
    const auto wants = [](u32 lane) { return lane % 3 != 0; };
    const auto covers = [](u32 lane) { return lane >= 8 && lane < 16; };
    const auto first_of = [&](u32 lane) { return lane == 31 ? ~0ull >> 5 : lane * 4 * line_words + (covers(lane) ? 0 : 32); };
    check_report report;
    run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
      const u32 lane = g.rank();
      const status told =
          out.write_spans(g, wants(lane), first_of(lane), line_words, [](u32 k, u64 j) { return u64{k} * 1000 + j; });
      const status expected = !wants(lane)   ? status{}
                              : lane == 31   ? make_status(failure::out_of_range)
                              : covers(lane) ? status{}
                                             : media_error;
      PENSTOCK_CHECK_EQ(report, expected, told);
    });
    expect_clean(report);
    controller_.serve_all();
    fixture_->flush();
    for (u32 lane = 0; lane < 32; ++lane) {
      if (!wants(lane) || !covers(lane)) continue;
      for (u64 j = 0; j < line_words; ++j) ASSERT_EQ(lane * 1000 + j, media_.words()[first_of(lane) + j]) << "lane " << lane;
    }
    expect_at_rest();
  }
}

TEST_P(write_warp_test, runs_of_lanes_go_to_the_drives_that_have_their_lines) {
  for (const auto layout : {volume_layout::replicated, volume_layout::striped}) {
    media_a_.stamp_all();
    media_b_.stamp_all();
    scripted_controller drives[2]{scripted_controller(media_a_.bytes()), scripted_controller(media_b_.bytes())};
    line_cache cache = over(layout, drives, 1, 30 * one_second_ns);
    const auto words = cache.writable<u64>(0, 0, 64 * line_words);
    // Every other line, so that each is a run of its own.
    for (u64 line = 0; line < 64; line += 2) {
      for (u64 word = line * line_words; word < (line + 1) * line_words; ++word) words.write(word, value(word));
    }
    check_report report;
    run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
      const cleaned some = clean_next(g, cache.view(), 32);
      PENSTOCK_CHECK(report, some.step == clean_step::sent);
      PENSTOCK_CHECK_EQ(report, 32u, some.runs);
    });
    expect_clean(report);
    cache.flush();
    const bool striped = layout == volume_layout::striped;
    for (u64 word = 0; word < 64 * line_words; ++word) {
      const u64 expected = word / line_words % 2 == 0 ? value(word) : stamp(striped ? place_of(word) : word);
      for (u64 drive = 0; drive < 2; ++drive) {
        if (striped && drive_of(word) != drive) continue;
        ASSERT_EQ(expected, (drive == 0 ? media_a_ : media_b_).words()[striped ? place_of(word) : word])
            << "drive " << drive << ", word " << word;
      }
    }
  }
}

// Line 0 is being written, and was stored into since: a warp that flushes it and its neighbours on a drive that works does not
// wait for it before it sends those.
TEST_P(write_warp_test, a_line_that_is_being_written_holds_no_other_back) {
  scripted_controller drives[2]{scripted_controller(media_a_.bytes()), scripted_controller(media_b_.bytes())};
  {
    line_cache cache = over(volume_layout::striped, drives, 128, one_second_ns);
    const auto words = cache.writable<u64>(0, 0, 64 * line_words);
    drives[0].answer_writes([](u64) { return verdict{0, true}; });
    words.write(0, value(0));
    EXPECT_EQ(clean_step::sent, clean_lines(lone_thread(), cache.view(), true, 0, line_id{0}, clean_which::all).step);
    words.write(1, value(1));
    for (u64 line = stripe_lines; line < 2 * stripe_lines; ++line) words.write(line * line_words, value(line * line_words));
    flush_report report;
    run_emulated_warp(~lane_mask{0}, [&](emulated_warp const& g) {
      flush_lines(g, cache.view(), {.dataset = 0, .first = 0, .last = 32}, report, 0, 32);
    });
    EXPECT_EQ(1u, report.failed_lines) << "the one that its drive holds";
    EXPECT_EQ(0u, report.last_failed);
    for (u64 line = stripe_lines; line < 2 * stripe_lines; ++line) {
      EXPECT_EQ(value(line * line_words), media_b_.words()[place_of(line * line_words)]) << "line " << line;
    }
    drives[0].answer_writes([](u64) { return verdict{}; });
    cache.recover(recover_scope::all);
    cache.flush();
  }
  EXPECT_EQ(value(0), media_a_.words()[0]);
  EXPECT_EQ(value(1), media_a_.words()[1]);
}

}  // namespace
}  // namespace penstock::test
