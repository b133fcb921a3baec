// Writes that the world refuses, delays or loses, and writes that overlap: nothing that was stored is ever lost without a word,
// and what storage has is what was stored.
#include "fault/writable_cache.hpp"

#include <atomic>

namespace penstock::test {
namespace {

constexpr u16 full = nvme::code::capacity_exceeded;

class write_fault_test : public writable_cache {};
PENSTOCK_UNDER_BOTH_DIRECTORIES(write_fault_test);

TEST_P(write_fault_test, a_write_is_seen_at_once_and_in_storage_after_a_flush) {
  make_writable({.frames = 16});
  for (u64 word = 0; word < 16 * line_words; word += 5) store(word);
  EXPECT_EQ(value(5), words_[5]);
  EXPECT_EQ(stamp(6), words_[6]);
  EXPECT_EQ("", flush_sentence());
  for (u64 word = 0; word < 16 * line_words; ++word) EXPECT_EQ(word % 5 == 0 ? value(word) : stamp(word), media(word));
  expect_at_rest();
}

// Statuses that a drive may give to a Write.
TEST_P(write_fault_test, every_status_of_a_write_is_told_and_nothing_is_lost) {
  make_writable({.frames = 14});
  u64 told = 0;
  for (const int number : {0x002, 0x004, 0x006, 0x080, 0x081, 0x082, 0x180, 0x280, 0x285, 0x286, 0x7ff}) {
    const u16 code = static_cast<u16>(number);
    store(3 * line_words + told);
    store(4 * line_words);
    controller_.answer_writes([code](u64) { return verdict{code}; });
    const std::string sentence = flush_sentence();
    EXPECT_NE(std::string::npos, sentence.find("write media bytes 1536 to 2559: ")) << sentence;
    EXPECT_NE(std::string::npos, sentence.find(describe({status_domain::nvme, code}))) << sentence;
    EXPECT_NE(std::string::npos, sentence.find("2 lines stay in the cache")) << sentence;
    EXPECT_TRUE(dirty(3) && dirty(4) && !writing(3) && !writing(4));
    EXPECT_EQ(2u, dirty_lines());
    EXPECT_EQ(value(3 * line_words + told), words_[3 * line_words + told]);
    ++told;
  }
  EXPECT_EQ(stamp(3 * line_words), media(3 * line_words));
  EXPECT_EQ(told, cache().stats(0).write_errors);
  controller_.answer_writes([](u64) { return verdict{}; });
  EXPECT_EQ("", flush_sentence());
  for (u64 k = 0; k < told; ++k) EXPECT_EQ(value(3 * line_words + k), media(3 * line_words + k));
}

// A disk that fills up: others go on, the lines stay, and once there is room all of it arrives.
TEST_P(write_fault_test, a_full_disk_keeps_its_lines_in_the_cache) {
  make_writable({.frames = 28, .timeout_ns = soon, .write_back = {.command_bytes = 512}});
  controller_.answer_writes([](u64 byte) { return verdict{byte >= 8 * 512 ? full : u16{0}}; });
  for (u64 line = 0; line < 12; ++line) store(line * line_words + line);
  const std::string sentence = flush_sentence();
  EXPECT_NE(std::string::npos, sentence.find("write media bytes ")) << sentence;
  EXPECT_NE(std::string::npos, sentence.find("to 6143: NVMe status 0x081 (capacity exceeded): ")) << sentence;
  for (u64 line = 8; line < 12; ++line) EXPECT_TRUE(dirty(line)) << line;
  // Reads of other lines, as many as there are frames, do not lose them.
  for (u64 line = 20; line < 80; ++line) EXPECT_EQ(status{}, read(line));
  for (u64 line = 0; line < 12; ++line) EXPECT_EQ(value(line * line_words + line), words_[line * line_words + line]);
  controller_.answer_writes([](u64) { return verdict{}; });
  EXPECT_EQ("", flush_sentence());
  for (u64 line = 0; line < 12; ++line) EXPECT_EQ(value(line * line_words + line), media(line * line_words + line));
}

TEST_P(write_fault_test, frames_that_cannot_be_written_end_in_an_error_that_says_why) {
  make_writable({.frames = 7, .timeout_ns = soon, .write_back = {.most_dirty = 1}});
  controller_.answer_writes([](u64) { return verdict{full}; });
  u64 stored = 0, line = 0;
  const u64 begun = now_ns();
  for (; line < 60; ++line) {
    store(line * line_words);
    stored += dirty(line);
    if (stored >= view().frames) break;
  }
  (void)fault_sentence();
  status outcome{};
  for (u64 other = 64; other < 128 && outcome.ok(); ++other) {
    u64 word = 0;
    outcome = read(other, word);
  }
  EXPECT_EQ((status{status_domain::nvme, full}), outcome);
  EXPECT_LT(now_ns() - begun, 10 * far_off_ns);
  controller_.answer_writes([](u64) { return verdict{}; });
  EXPECT_EQ("", flush_sentence());
  u64 arrived = 0;
  for (u64 l = 0; l <= line; ++l) arrived += media(l * line_words) == value(l * line_words);
  EXPECT_EQ(stored, arrived);
}

// With the patience that caches have by default: a status that no retry helps ends the access at once, and so does one that a
// retry would help where the drive forbids it (DNR).
TEST_P(write_fault_test, an_access_that_needs_a_frame_does_not_wait_for_writes_that_are_in_vain) {
  for (const u16 code : {u16{0x1bc}, u16{0x020}, u16{0x081}, u16{0x006 | nvme::do_not_retry}}) {
    make_writable({.frames = 7, .timeout_ns = 30 * one_second_ns, .write_back = {.most_dirty = 1}});
    controller_.answer_writes([code](u64) { return verdict{code}; });
    const u64 begun = now_ns();
    status outcome{};
    for (u64 line = 0; line < 60 && outcome.ok(); ++line)
      outcome = out_.try_write(lone_thread(), true, line * line_words, value(line));
    EXPECT_EQ((status{status_domain::nvme, static_cast<u16>(code & 0x7ff)}), outcome) << code;
    EXPECT_EQ(cache().stats(0).write_errors, 3u) << "and not tried for ever";
    u64 word = 0;
    status other{};
    for (u64 line = 64; line < 128 && other.ok(); ++line) other = read(line, word);
    EXPECT_EQ(outcome, other) << code;
    EXPECT_LT(now_ns() - begun, 5 * one_second_ns) << code;
    controller_.answer_writes([](u64) { return verdict{}; });
    EXPECT_EQ("", flush_sentence());
    EXPECT_EQ(status{}, read(100, word)) << "the cache works again";
  }
}

TEST_P(write_fault_test, an_access_that_needs_a_frame_waits_for_writes_that_may_be_over_soon) {
  make_writable({.frames = 7, .timeout_ns = soon, .write_back = {.most_dirty = 1}});
  controller_.answer_writes([](u64) { return verdict{0x006}; });
  status outcome{};
  u64 begun = 0;
  for (u64 line = 0; line < 60 && outcome.ok(); ++line) {
    begun = now_ns();
    outcome = out_.try_write(lone_thread(), true, line * line_words, value(line));
  }
  EXPECT_EQ((status{status_domain::nvme, 0x006}), outcome);
  EXPECT_GE(now_ns() - begun, u64{soon}) << "for as long as an access may wait";
  controller_.answer_writes([](u64) { return verdict{}; });
  EXPECT_EQ("", flush_sentence());
}

// Between the copy and its completion the line is stored into again.
TEST_P(write_fault_test, a_store_during_a_write_is_written_again) {
  make_writable({.frames = 14});
  controller_.answer_writes([](u64) { return verdict{0, true}; });
  store(0);
  ASSERT_EQ(clean_step::sent, clean(0));
  EXPECT_TRUE(writing(0) && !dirty(0));
  EXPECT_EQ(clean_step::nothing, clean(0)) << "one write of a line at a time";
  store(1);
  EXPECT_TRUE(writing(0) && dirty(0));
  EXPECT_EQ(clean_step::nothing, clean(0));
  EXPECT_EQ(value(0), words_[0]) << "readable meanwhile";
  controller_.answer_writes([](u64) { return verdict{}; });
  ASSERT_TRUE(drive_until([&] { return retire(), !writing(0); }));
  EXPECT_TRUE(dirty(0));
  EXPECT_EQ(value(0), media(0));
  EXPECT_EQ(stamp(1), media(1));
  EXPECT_EQ("", flush_sentence());
  EXPECT_EQ(value(1), media(1));
  expect_at_rest();
}

// What a pin stores after a flush has written its line is not taken for written.
TEST_P(write_fault_test, a_store_after_a_flush_under_the_same_pin_is_dirty_again) {
  make_writable({.frames = 14, .timeout_ns = soon});
  {
    writable_line<lone_thread> line = pin_to_write(lone_thread(), out_, 2);
    line.store<u64>(2 * 8, value(2));
    EXPECT_FALSE(dirty(0)) << "not before it is let go";
    {
      writable_line<lone_thread> other = pin_to_write(lone_thread(), out_, 3);
      other.store<u64>(3 * 8, value(3));
    }
    EXPECT_TRUE(dirty(0));
    EXPECT_EQ(clean_step::nothing, clean(0)) << "somebody may be storing";
    EXPECT_EQ("", flush_sentence());
    EXPECT_EQ(value(3), media(3));
    EXPECT_FALSE(dirty(0));
    line.store<u64>(4 * 8, value(4));
  }
  EXPECT_TRUE(dirty(0));
  EXPECT_EQ("", flush_sentence());
  EXPECT_EQ(value(4), media(4));
  { const writable_line<lone_thread> unused = pin_to_write(lone_thread(), out_, 2); }
  EXPECT_FALSE(dirty(0)) << "nothing was stored";
}

// Whoever looks for a frame between the store and the end of the pin must find the line dirty.
TEST_P(write_fault_test, a_line_is_dirty_before_it_is_let_go) {
  make_writable({.frames = 2});
  std::atomic<bool> over{false};
  run_threads(2, [&](u32 i) {
    if (i == 1) {
      for (u64 line = 64; !over; line = line == 127 ? 64 : line + 1) EXPECT_EQ(status{}, read(line));
      return;
    }
    for (u64 line = 0; line < 40; ++line) store(line * line_words);
    over = true;
  });
  EXPECT_EQ("", flush_sentence());
  for (u64 line = 0; line < 40; ++line) EXPECT_EQ(value(line * line_words), media(line * line_words)) << line;
  expect_at_rest();
}

// The buffer of a write that was given up may still be read by its controller, and its bytes may arrive late: until then its
// lines take no other write and its slot is not used again.
TEST_P(write_fault_test, a_lost_write_keeps_its_lines_until_it_is_heard_of) {
  make_writable({.frames = 14, .queues = 1, .timeout_ns = soon, .write_back = {.commands = 2}});
  controller_.answer_writes([](u64) { return verdict{0, true}; });
  store(0);
  const std::string sentence = flush_sentence();
  EXPECT_NE(std::string::npos, sentence.find("write media bytes 0 to 511: no answer before the deadline")) << sentence;
  EXPECT_TRUE(writing(0));
  store(1);
  EXPECT_TRUE(writing(0) && dirty(0));
  EXPECT_NE("", flush_sentence());
  EXPECT_EQ(stamp(0), media(0));
  controller_.answer_writes([](u64) { return verdict{}; });
  ASSERT_TRUE(drive_until([&] { return retire(), !writing(0); }));
  EXPECT_TRUE(dirty(0)) << "nobody knows what of it arrived when";
  EXPECT_EQ("", flush_sentence());
  EXPECT_EQ(value(0), media(0));
  EXPECT_EQ(value(1), media(1));
  expect_at_rest();
}

// Lines whose writes a controller took with it are dirty again after the reset, and arrive.
TEST_P(write_fault_test, a_reset_gives_lost_writes_back) {
  for (const bool bounce : {false, true}) {
    media_.stamp_all();
    make_writable({.frames = 56, .queues = 2, .bounce = bounce, .timeout_ns = soon, .write_back = {.command_bytes = 512}});
    controller_.answer_writes([](u64) { return verdict{0, true}; });
    for (u64 line = 0; line < 20; ++line) store(line * line_words);
    EXPECT_NE("", flush_sentence());
    EXPECT_EQ(stamp(0), media(0));
    EXPECT_LT(0u, cache().recover(recover_scope::all).queues);
    controller_.answer_writes([](u64) { return verdict{}; });
    retire();
    EXPECT_EQ(20u, dirty_lines());
    EXPECT_EQ("", flush_sentence());
    for (u64 line = 0; line < 20; ++line) EXPECT_EQ(value(line * line_words), media(line * line_words));
    for (u64 line = 0; line < 20; ++line) EXPECT_FALSE(dirty(line) || writing(line));
  }
}

TEST_P(write_fault_test, whole_lines_are_not_read_first) {
  make_writable({.frames = 70});
  controller_.fail_all(nvme::code::unrecovered_read_error);
  const auto make = [](u64 i) { return value(i); };
  EXPECT_EQ(status{}, out_.write_span(lone_thread(), 2 * line_words, 5 * line_words, make));
  EXPECT_EQ(0u, cache().stats(0).fills);
  EXPECT_EQ(5u, cache().stats(0).whole_lines);
  // A line that could not be read is made good by being written whole.
  EXPECT_EQ(media_error, pin_and_release(20));
  EXPECT_EQ(media_error, out_.write_span(lone_thread(), 20 * line_words, line_words - 1, make));
  EXPECT_EQ(5u * 512, cache().stats(0).bytes_changed) << "what failed has stored nothing";
  EXPECT_EQ(status{}, out_.write_span(lone_thread(), 20 * line_words, line_words, make));
  EXPECT_EQ(value(20 * line_words), words_[20 * line_words]);
  controller_.serve_all();
  EXPECT_EQ("", flush_sentence());
  for (u64 i = 2 * line_words; i < 7 * line_words; ++i) EXPECT_EQ(value(i), media(i));
  EXPECT_EQ(stamp(2 * line_words - 1), media(2 * line_words - 1));
  EXPECT_EQ(value(20 * line_words + 1), media(20 * line_words + 1));
}

// Somebody who found another line there a moment ago says late that it was used.
TEST_P(write_fault_test, a_line_written_whole_may_be_called_used_meanwhile) {
  make_writable({.frames = 14});
  const held_line held = pin_to_store(lone_thread(), view(), 0, line_id{5}, true);
  ASSERT_TRUE(held.error.ok() && held.owned);
  device_ref<u64>(*held.entry).fetch_or(entry::referenced_bit, relaxed);
  for (u64 k = 0; k < line_words; ++k) store_piece(reinterpret_cast<u64*>(held.frame) + k, value(5 * line_words + k));
  unpin_stored(lone_thread(), view(), 0, held.entry, held.owned);
  ASSERT_EQ(line_state::valid, state_of(5));
  EXPECT_EQ(value(5 * line_words + 1), words_[5 * line_words + 1]);
  EXPECT_EQ("", flush_sentence());
  EXPECT_EQ(value(5 * line_words), media(5 * line_words));
  expect_at_rest();
}

TEST_P(write_fault_test, discarded_lines_read_as_what_storage_has) {
  make_writable({.frames = 28, .timeout_ns = soon});
  for (u64 line = 0; line < 8; ++line) store(line * line_words);
  cache().discard(0, 2 * 512 + 100, 512);  // lines 2 and 3
  EXPECT_EQ(6u, dirty_lines());
  EXPECT_EQ(value(line_words), words_[line_words]);
  EXPECT_EQ(stamp(2 * line_words), words_[2 * line_words]);
  EXPECT_EQ("", flush_sentence());
  for (u64 line = 0; line < 8; ++line) {
    EXPECT_EQ(line == 2 || line == 3 ? stamp(line * line_words) : value(line * line_words), media(line * line_words));
  }
  for (u64 line = 0; line < 100; ++line) EXPECT_EQ(status{}, line < 8 ? status{} : read(line)) << "no frame was lost";
  cache().discard(0, 0, media_.size());
  expect_at_rest();
}

TEST_P(write_fault_test, what_is_held_is_not_discarded) {
  make_writable({.frames = 28, .timeout_ns = soon});
  store(0);
  const pinned_line<lone_thread> held = pin(lone_thread(), words_, 0);
  EXPECT_THROW(cache().discard(0, 0, 512), error);
  EXPECT_EQ(value(0), words_[0]);
}

TEST_P(write_fault_test, a_cache_that_goes_writes_what_it_has) {
  make_writable({.frames = 28});
  store(77);
  fixture_.reset();
  EXPECT_EQ(value(77), media(77));
  make_writable({.frames = 28});
  store(78);
  controller_.answer_writes([](u64) { return verdict{full}; });
  testing::internal::CaptureStderr();
  fixture_.reset();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, said.find("this is lost: write media bytes 512 to 1023: ")) << said;
}

TEST_P(write_fault_test, elements_beyond_the_dataset_are_refused) {
  make_writable({.frames = 28});
  const u64 beyond = media_.size() / 8;
  out_.write(beyond, 1);
  EXPECT_EQ("write media at byte 65536: the line lies outside of the dataset", fault_sentence());
  EXPECT_EQ(make_status(failure::out_of_range), out_.try_write(lone_thread(), true, ~0ull >> 5, 1));
  EXPECT_EQ(make_status(failure::out_of_range), out_.write_span(lone_thread(), beyond - 1, 2, [](u64) { return 1ull; }));
  EXPECT_EQ(stamp(beyond - 1), words_[beyond - 1]);
  EXPECT_THROW(cache().flush(0, 65000, 1000), error);
  EXPECT_THROW(cache().discard(0, 65537, 0), error);
}

TEST_P(write_fault_test, a_latched_failure_names_what_the_program_did) {
  make_writable({.frames = 28});
  controller_.fail_all(nvme::code::unrecovered_read_error);
  out_.write(3, 1);
  EXPECT_EQ(0u, words_[9]) << "a later one, which is not kept";
  EXPECT_EQ("write media at byte 24: NVMe status 0x281 (unrecovered read error)", fault_sentence());
  EXPECT_EQ(0u, words_[9]);
  EXPECT_EQ("read media at byte 72: NVMe status 0x281 (unrecovered read error)", fault_sentence());
  EXPECT_EQ(0u, out_.fetch_add(5, 1));
  EXPECT_EQ("write media at byte 40: NVMe status 0x281 (unrecovered read error)", fault_sentence());
  controller_.serve_all();
}

TEST_P(write_fault_test, a_part_of_a_block_at_the_end_keeps_what_follows) {
  const volume_spec volume{volume_layout::single, {{&controller_, 1}}};
  line_cache cut(*on_, {{"cut", 1000, volume, true}}, {.bytes = 14 * 512, .line_bytes = 512, .directory = GetParam()});
  const auto words = cut.writable<u64>(0, 0, 125);
  EXPECT_EQ(status{}, words.write_span(lone_thread(), 0, 125, [](u64 i) { return value(i); }));
  cut.flush();
  for (u64 i = 0; i < 128; ++i) EXPECT_EQ(i < 125 ? value(i) : stamp(i), media(i));
  EXPECT_EQ(1u, cut.stats(0).whole_lines);
}

TEST_P(write_fault_test, replicas_are_all_written_and_stripes_where_they_belong) {
  stamped_media a(1 << 15), b(1 << 15);
  model_controller drives[2]{model_controller({}), model_controller({})};
  drives[0].add_namespace(a.bytes());
  drives[1].add_namespace(b.bytes());
  for (const auto layout : {volume_layout::replicated, volume_layout::striped}) {
    a.stamp_all();
    b.stamp_all();
    const bool striped = layout == volume_layout::striped;
    const u64 bytes = striped ? 1 << 16 : 1 << 15;
    line_cache cache(*on_, {{"both", bytes, {layout, {{&drives[0], 1}, {&drives[1], 1}}, 2048}, true}},
                     {.bytes = 140 * 512, .line_bytes = 512, .directory = GetParam()});
    const auto words = cache.writable<u64>(0, 0, bytes / 8);
    EXPECT_EQ(status{}, words.write_span(lone_thread(), 0, bytes / 8, [](u64 i) { return value(i); }));
    cache.flush();
    for (u64 i = 0; i < bytes / 8; ++i) {
      const u64 stripe = i / 256;
      const u64 at = striped ? stripe / 2 * 256 + i % 256 : i;
      if (!striped || stripe % 2 == 0) {
        ASSERT_EQ(value(i), a.words()[at]) << i;
      }
      if (!striped || stripe % 2 == 1) {
        ASSERT_EQ(value(i), b.words()[at]) << i;
      }
    }
    EXPECT_EQ(bytes * (striped ? 1 : 2), cache.stats(0).bytes_written);
  }
}

TEST_P(write_fault_test, what_cannot_be_written_is_refused_in_one_sentence) {
  make({.frames = 28});
  const auto refused = [](auto const& act) {
    try {
      act();
      return std::string("not refused");
    } catch (error const& why) {
      EXPECT_EQ(error_kind::bad_input, why.kind());
      return std::string(why.what());
    }
  };
  EXPECT_EQ("write media: it was opened read-only: open it as writable", refused([&] { fixture_->writable(); }));
  EXPECT_EQ("write media: it was opened read-only: open it as writable", refused([&] { cache().flush(0, 0, 8); }));
  const std::string without = refused([&] { make_writable({.frames = 28, .without = {.cache = true}}); });
  EXPECT_NE(std::string::npos, without.find("without a cache nothing can be written")) << without;
  const std::string share = refused([&] { make_writable({.frames = 28, .write_back = {.most_dirty = 1.5}}); });
  EXPECT_NE(std::string::npos, share.find("write_back.most_dirty of 1.5")) << share;
}

}  // namespace
}  // namespace penstock::test
