// A cache behind a scripted controller, for tests of what happens when the world fails.
#pragma once

#include "penstock/host/error.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"
#include "support/scripted_controller.hpp"

namespace penstock::test {

inline constexpr status deadline = make_status(failure::deadline);
inline constexpr status media_error{status_domain::nvme, nvme::code::unrecovered_read_error};
/// Far more than any wait that is bounded takes, far less than a hang.
inline constexpr u64 far_off_ns = 15 * one_second_ns;

/// One cache over stamped bytes behind a scripted controller; line l begins with word l * 64.
class faulty_cache : public testing::TestWithParam<directory_kind> {
 protected:
  static constexpr u64 line_words = 64;

  void make(cache_shape shape) {
    fixture_.reset();
    fixture_ = std::make_unique<cache_fixture>(*on_, controller_, 1, with_directory(shape, GetParam()));
    words_ = fixture_->words();
  }
  bool direct() const { return GetParam() == directory_kind::direct; }
  line_cache& cache() { return fixture_->cache(); }
  line_cache_view const& view() { return fixture_->cache().view(); }
  found_line find(u64 line) { return view().directory.find(line_id{line}); }
  u64 entry_at(u64 line) { return find(line).word; }
  line_state state_of(u64 line) { return entry::state(entry_at(line)); }

  status read(u64 line, u64& word) {
    return read_line(lone_thread(), view(), 0, true, line_id{line}, find(line),
                     [&](u64 frame) { word = load_piece(reinterpret_cast<u64 const*>(frame)); });
  }
  status read(u64 line) {
    u64 word = 0;
    const status outcome = read(line, word);
    EXPECT_EQ(outcome.ok() ? stamp(line * line_words) : 0, word) << "line " << line;
    return outcome;
  }
  status pin_and_release(u64 line) { return pin(lone_thread(), words_, line * line_words).error(); }

  /// Moves the queues until `reached`; false after far too long.
  template <class Condition>
  bool drive_until(Condition const& reached) {
    backoff patience(far_off_ns);
    while (!reached()) {
      for (u32 q = 0; q < view().queues_count; ++q) view().queues[q].progress(lone_thread());
      if (!patience.pause()) return reached();
    }
    return true;
  }
  /// The same for what other threads bring about.
  template <class Condition>
  static bool wait_until(Condition const& reached) {
    backoff patience(far_off_ns);
    while (!reached()) {
      if (!patience.pause()) return reached();
    }
    return true;
  }
  void expect_at_rest() {
    check_report report;
    fixture_->check_at_rest(report);
    expect_clean(report);
  }
  std::string fault_sentence() {
    try {
      cache().check_faults();
      return "";
    } catch (error const& fault) {
      EXPECT_EQ(error_kind::world, fault.kind());
      return fault.what();
    }
  }

  stamped_media media_{1 << 16};
  scripted_controller controller_{media_.bytes()};
  std::unique_ptr<executor> on_ = open_executor("cpu", 1);
  std::unique_ptr<cache_fixture> fixture_;
  array_view<u64> words_;
};

/// Every test of a suite under both directories.
#define PENSTOCK_UNDER_BOTH_DIRECTORIES(suite)                                      \
  INSTANTIATE_TEST_SUITE_P(directories, suite, testing::ValuesIn(both_directories), \
                           [](auto const& kind) { return name_of(kind.param); })

}  // namespace penstock::test
