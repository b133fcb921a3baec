// Fills that end with an error, late or never: everyone who asked is answered with the right status, bytes are never wrong, and
// afterwards the cache works.
#include "penstock/array/array_ref.hpp"
#include "penstock/core/clock.hpp"
#include "support/faulty_cache.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace penstock::test {
namespace {

using cache_fault_test = faulty_cache;
PENSTOCK_UNDER_BOTH_DIRECTORIES(cache_fault_test);

// Statuses that a drive may give, one or more of each type.
constexpr u16 all_codes[] = {0x001, 0x002, 0x004, 0x005, 0x006, 0x007, 0x008, 0x00b, 0x013, 0x080, 0x082, 0x180, 0x1ff,
                             0x280, 0x281, 0x282, 0x283, 0x284, 0x285, 0x286, 0x287, 0x300, 0x371, 0x700, 0x7ff};

TEST_P(cache_fault_test, every_status_of_a_fill_reaches_its_asker) {
  for (const bool bounce : {false, true}) {
    make({.frames = 4, .bounce = bounce});
    for (const u16 code : all_codes) {
      const status told{status_domain::nvme, code};
      controller_.fail_all(code);
      ASSERT_EQ(told, pin_and_release(3));
      EXPECT_EQ(line_state::failed, state_of(3));
      EXPECT_EQ(told, read(3)) << "asked again, answered anew";
      u64 untouched = 17;
      EXPECT_EQ(told, read(4, untouched));
      EXPECT_EQ(17u, untouched);
    }
    controller_.serve_all();
    EXPECT_EQ(status{}, read(3));
    EXPECT_EQ(status{}, pin_and_release(4));
    EXPECT_EQ(3 * std::size(all_codes), cache().stats(0).errors);
    expect_at_rest();
  }
}

// Judged by class: what may be over soon is tried again, what is not is told at once.
TEST_P(cache_fault_test, what_may_be_over_soon_is_tried_again) {
  make({.frames = 4});
  u32 left = 0;
  const auto fails_twice_with = [&](u16 code) {
    left = 2;
    controller_.answer([&left, code](u64) { return verdict{left != 0 ? (--left, code) : u16{0}}; });
  };
  for (const u16 code : {u16{0x004}, u16{0x006}, u16{0x007}, u16{0x082}, u16{0x371}}) {
    fails_twice_with(code);
    EXPECT_EQ(status{}, read(3)) << code;
    for (u64 line = 10; line < 30; ++line) EXPECT_EQ(status{}, read(line));
  }
  EXPECT_EQ(10u, cache().stats(0).refills);
  EXPECT_EQ(0u, cache().stats(0).errors);
  for (const u16 code : {u16{0x002}, u16{0x080}, u16{0x281}, u16{0x286}}) {
    fails_twice_with(code);
    EXPECT_EQ((status{status_domain::nvme, code}), read(3)) << code;
    EXPECT_EQ(1u, left) << "asked once";
  }
  for (const u16 code : {u16{0x006}, u16{0x082}, u16{0x371}}) {
    fails_twice_with(code | nvme::do_not_retry);
    EXPECT_EQ((status{status_domain::nvme, code}), read(3)) << "the drive says that it would be in vain: " << code;
    EXPECT_EQ(1u, left) << "asked once";
  }
  left = 0;
  // A policy of one's own: media errors, too, and up to four times with a little time between.
  constexpr u64 first_wait = 40 * one_millisecond_ns;
  make({.frames = 4, .retry = {.attempts = 4, .classes = bit_of(error_class::media), .first_wait_ns = first_wait}});
  left = 3;
  controller_.answer([&left](u64) { return verdict{left != 0 ? (--left, u16{0x281}) : u16{0}}; });
  const u64 begun = now_ns();
  EXPECT_EQ(status{}, read(3));
  EXPECT_GE(now_ns() - begun, (1 + 2 + 4) * first_wait);
  expect_at_rest();
}

TEST_P(cache_fault_test, a_dataset_that_fails_again_and_again_is_not_asked_any_more) {
  make({.frames = 14, .retry = {.attempts = 2, .first_wait_ns = 1, .fails_after = 6}});
  EXPECT_EQ(status{}, read(1));
  const status told{status_domain::nvme, 0x006};
  controller_.fail_all(0x006);
  for (u64 line = 10; line < 12; ++line) EXPECT_EQ(told, read(line));
  controller_.serve_all();
  EXPECT_EQ(status{}, read(10));
  controller_.fail_all(0x006);
  for (u64 line = 12; line < 14; ++line) EXPECT_EQ(told, read(line));
  controller_.serve_all();
  EXPECT_EQ(status{}, read(12)) << "one that goes well begins the count anew";
  controller_.fail_all(0x006);
  for (u64 line = 20; line < 23; ++line) EXPECT_EQ(told, read(line));
  const u64 asked = controller_.fetched();
  controller_.serve_all();
  for (u64 line = 30; line < 40; ++line) EXPECT_EQ(told, read(line));
  EXPECT_EQ(told, pin_and_release(20));
  EXPECT_EQ(0u, words_[50 * line_words]);
  EXPECT_EQ(asked, controller_.fetched());
  EXPECT_EQ(status{}, read(1)) << "what is here can be read";
  cache().recover();
  EXPECT_EQ(status{}, read(30)) << "asked again";
}

TEST_P(cache_fault_test, who_asks_for_the_status_of_an_element_gets_it_and_nothing_is_latched) {
  make({.frames = 4});
  controller_.answer([](u64 byte) { return verdict{byte >= 5 * 512 ? nvme::code::unrecovered_read_error : u16{0}}; });
  u64 word = 17;
  EXPECT_EQ(media_error, words_.try_read(5 * line_words + 3, word));
  EXPECT_EQ(17u, word) << "after an error it stays as it was";
  EXPECT_EQ(status{}, words_.try_read(4 * line_words, word));
  EXPECT_EQ(stamp(4 * line_words), word);
  EXPECT_EQ(make_status(failure::out_of_range), words_.try_read(words_.size(), word));
  EXPECT_EQ("", fault_sentence());
  check_report report;
  run_emulated_warp(0b111, [&](emulated_warp const& g) {
    // One line is there, one fails, and one lane wants nothing: each is told of its own.
    u64 mine = g.rank();
    const status told = words_.try_read(g, g.rank() != 2, (4 + g.rank()) * line_words, mine);
    PENSTOCK_CHECK_EQ(report, g.rank() == 1 ? media_error : status{}, told);
    PENSTOCK_CHECK_EQ(report, g.rank() == 0 ? stamp(4 * line_words) : g.rank(), mine);
  });
  expect_clean(report);
  EXPECT_EQ("", fault_sentence());
  controller_.serve_all();
  EXPECT_EQ(status{}, words_.try_read(5 * line_words + 3, word));
  EXPECT_EQ(stamp(5 * line_words + 3), word);
  expect_at_rest();
}

TEST_P(cache_fault_test, an_element_that_cannot_be_read_is_zero_and_told_once) {
  make({.frames = 4});
  EXPECT_EQ("", fault_sentence());
  controller_.answer([](u64 byte) { return verdict{byte >= 5 * 512 ? nvme::code::unrecovered_read_error : u16{0}}; });
  EXPECT_EQ(stamp(4 * line_words), words_[4 * line_words]);
  EXPECT_EQ("", fault_sentence());
  EXPECT_EQ(0u, words_[5 * line_words + 3]);
  EXPECT_EQ(0u, fixture_->bytes()[7 * 512 + 9]);  // the first fault is kept
  EXPECT_EQ(pack(media_error), view().fault->failure);
  EXPECT_EQ(0u, view().fault->dataset);
  EXPECT_EQ("read media at byte 2584: NVMe status 0x281 (unrecovered read error)", fault_sentence());
  EXPECT_EQ("", fault_sentence());
  {
    array_ref<u64> follow(words_);
    EXPECT_EQ(0u, follow[6 * line_words]);
    EXPECT_EQ(stamp(1), follow[1]);
  }
  EXPECT_EQ("read media at byte 3072: NVMe status 0x281 (unrecovered read error)", fault_sentence());
  controller_.serve_all();
  for (u64 i = 0; i < 8 * line_words; i += 7) EXPECT_EQ(stamp(i), words_[i]);
  EXPECT_EQ("", fault_sentence());
  expect_at_rest();
}

// The host looks whenever it likes, in several threads, and a fault may be on its way into the slot just then.
TEST_P(cache_fault_test, a_fault_is_told_whole_and_once_while_others_are_met) {
  make({.frames = 4});
  std::atomic<bool> over{false};
  const auto meet = [&](u16 code, fault_access access, u64 begin) {
    for (u64 offset = begin; !over.load(); std::this_thread::yield()) {
      for (u32 k = 0; k < 20; ++k, offset += 2) view().latch({status_domain::nvme, code}, access, 0, offset);
    }
  };
  std::mutex mutex;
  std::set<std::string> told;
  const u64 enough_ns = now_ns() + 12 * one_second_ns;  // under a sanitizer, on a machine with other work
  const auto tell = [&] {
    wait_until([&] {
      for (u32 k = 0; k < 20; ++k) {
        const std::string sentence = fault_sentence();
        if (sentence.empty()) continue;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(told.insert(sentence).second) << "told twice: " << sentence;
      }
      const std::lock_guard lock(mutex);
      return told.size() >= 20000 || now_ns() >= enough_ns || HasFailure();
    });
  };
  std::thread reader([&] { meet(nvme::code::unrecovered_read_error, fault_access::read, 0); });
  std::thread writer([&] { meet(nvme::code::write_fault, fault_access::write, 1); });
  std::thread other(tell);
  tell();
  other.join();
  over.store(true);
  reader.join();
  writer.join();
  EXPECT_GE(told.size(), 500u);
  for (std::string const& each : told) {
    const u64 offset = std::stoull(each.substr(each.find_first_of("0123456789")));
    EXPECT_EQ(offset % 2 == 0 ? "read media at byte " + std::to_string(offset) + ": NVMe status 0x281 (unrecovered read error)"
                              : "write media at byte " + std::to_string(offset) + ": NVMe status 0x280 (write fault)",
              each);
  }
}

TEST_P(cache_fault_test, a_fault_names_its_dataset) {
  const volume_spec volume{volume_layout::single, {{&controller_, 1}}};
  const line_cache two(*on_, {{"a", 4096, volume}, {"b", 8192, volume}},
                       {.bytes = 4096, .line_bytes = 512, .queues = 1, .directory = GetParam()});
  controller_.fail_all(nvme::code::internal_error);
  EXPECT_EQ(0u, two.array<u64>(1, 0, 1024)[1023]);
  EXPECT_EQ(1u, two.view().fault->dataset);
  EXPECT_EQ(8184u, two.view().fault->offset);
}

TEST_P(cache_fault_test, all_who_wait_for_a_fill_hear_the_same) {
  constexpr u32 waiters = 6;
  make({.frames = 4});
  for (const status told : {media_error, status{}}) {
    controller_.hold_all();
    const u64 before = controller_.fetched();
    check_report report;
    run_threads(waiters + 1, [&](u32 i) {
      if (i < waiters) {
        PENSTOCK_CHECK_EQ(report, told, i % 2 == 0 ? read(9) : pin_and_release(9));
        return;
      }
      // The asker and everyone who joined hold a pin each.
      PENSTOCK_CHECK(report, wait_until([&] { return entry::pins(entry_at(9)) == waiters; }));
      controller_.answer([told](u64) { return verdict{told.code}; });
    });
    expect_clean(report);
    EXPECT_EQ(before + 1, controller_.fetched()) << "one fill for all";
    EXPECT_EQ(0u, entry::pins(entry_at(9)));
    EXPECT_EQ(told, read(9)) << "a newcomer";
  }
  expect_at_rest();
}

TEST_P(cache_fault_test, lanes_of_a_warp_hear_of_their_own_lines) {
  make({.frames = 40});
  controller_.answer([](u64 byte) { return verdict{byte / 512 % 3 == 0 ? nvme::code::unrecovered_read_error : u16{0}}; });
  check_report report;
  run_emulated_warp(0xffffffffu, [&](emulated_warp const& g) {
    const u64 line = g.rank() / 2;
    u64 word = 0;
    const status outcome = read_line(g, view(), 0, g.rank() != 7, line_id{line}, find(line),
                                     [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
    const bool fails = line % 3 == 0 && g.rank() != 7;
    PENSTOCK_CHECK_EQ(report, fails ? media_error : status{}, outcome);
    PENSTOCK_CHECK_EQ(report, fails || g.rank() == 7 ? 0 : stamp(line * line_words), word);
    // All or nothing: one bad line, and the group holds none.
    PENSTOCK_CHECK_EQ(report, media_error, pin(g, words_, line * line_words).error());
  });
  expect_clean(report);
  expect_at_rest();
}

TEST_P(cache_fault_test, a_prefetch_that_fails_is_asked_again_by_who_wants_the_line) {
  make({.frames = 8});
  controller_.fail_all(nvme::code::unrecovered_read_error);
  words_.prefetch(2 * line_words);
  ASSERT_TRUE(drive_until([&] { return state_of(2) == line_state::failed; }));
  EXPECT_EQ(0u, entry::pins(entry_at(2)));
  for (u32 s = 0; s < view().prefetch_shards; ++s) EXPECT_EQ(0u, view().prefetches_in_flight[s]);
  EXPECT_EQ("", fault_sentence()) << "nobody has asked for its bytes";
  EXPECT_EQ(0u, words_[2 * line_words]);
  EXPECT_NE("", fault_sentence());
  controller_.serve_all();
  EXPECT_EQ(stamp(2 * line_words), words_[2 * line_words]);
  EXPECT_EQ(1u, cache().stats(0).prefetches);
  expect_at_rest();
}

TEST_P(cache_fault_test, a_fill_that_is_late_keeps_its_frame_to_itself) {
  make({.frames = 2, .depth = 64, .timeout_ns = 10 * one_millisecond_ns});
  controller_.answer([](u64 byte) { return verdict{0, byte == 512}; });
  EXPECT_EQ(deadline, read(1));
  const u64 given_up = entry_at(1);
  u64 const* const given_up_entry = find(1).entry;
  EXPECT_EQ(line_state::failed, entry::state(given_up));
  EXPECT_EQ(1u, entry::pins(given_up)) << "quarantine";
  for (u32 round = 0; round < 3; ++round) {
    for (u64 line = 2; line < 20; ++line) EXPECT_EQ(status{}, read(line));
  }
  EXPECT_EQ(given_up, entry_at(1)) << "its frame was not given to any of them";
  EXPECT_EQ(deadline, read(1)) << "a newcomer waits, then hears what became of it";
  ASSERT_EQ(given_up, entry_at(1)) << "and changes nothing";

  // The late bytes come while another line is read all the time.
  EXPECT_EQ(status{}, read(30));
  controller_.serve_all();
  ASSERT_TRUE(drive_until([&] {
    EXPECT_EQ(stamp(30 * line_words + 5), words_[30 * line_words + 5]);
    return entry::pins(entry_at(1)) == 0;
  }));
  for (u32 round = 0; round < 3; ++round) {
    for (u64 line = 0; line < 20; ++line) EXPECT_EQ(status{}, read(line));
  }
  EXPECT_EQ("", fault_sentence());
  EXPECT_EQ(status{}, cache().queues()[view().record_of(given_up_entry, given_up).load_command() >> 16].failure);
  expect_at_rest();
}

// Through a bounce buffer it is the buffer that the controller may still write: the line may be asked again at once.
TEST_P(cache_fault_test, a_late_fill_through_a_bounce_buffer_harms_nobody) {
  make({.frames = 2, .queues = 1, .depth = 16, .bounce = true, .timeout_ns = 10 * one_millisecond_ns});
  controller_.hold_all();
  EXPECT_EQ(deadline, read(1));
  EXPECT_EQ(0u, entry::pins(entry_at(1)));
  bool first = true;
  controller_.answer([&first](u64 byte) { return verdict{0, byte == 512 && std::exchange(first, false)}; });
  EXPECT_EQ(status{}, read(1));
  controller_.serve_all();
  for (u32 round = 0; round < 3; ++round) {
    for (u64 line = 0; line < 20; ++line) EXPECT_EQ(status{}, read(line));
  }
  EXPECT_EQ(1u, cache().queues()[0].strays);
  EXPECT_EQ(status{}, cache().queues()[0].failure);
  expect_at_rest();
}

}  // namespace
}  // namespace penstock::test
