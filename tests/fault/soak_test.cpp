// The soak of `penstock bench soak`, small: operations under faults, every byte checked, every fault found again in the
// counters.
#include "libs/bench/soak.hpp"

#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace penstock::test {
namespace {

#if defined(PENSTOCK_TSAN)
constexpr u64 operations = 100'000;
#else
constexpr u64 operations = 700'000;
#endif

u64 from_environment(char const* name, u64 otherwise) {
  char const* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 0) : otherwise;
}

bench::soak_options small(directory_kind directory) {
  bench::soak_options options;
  options.executor = "cpu";
  options.operations = operations;
  options.directory = directory;
  options.bytes = 4 << 20;
  return options;
}

class soak_test : public testing::TestWithParam<directory_kind> {};

TEST_P(soak_test, no_byte_is_wrong_and_every_fault_is_found_again) {
  bench::soak_options options = small(GetParam());
  options.seed = from_environment("PENSTOCK_TEST_SEED", options.seed);
  options.operations = from_environment("PENSTOCK_SOAK_OPERATIONS", options.operations);
  const auto all = bench::run_soak_benchmark(options);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].verified);
  auto const& found = all[0].details;
  EXPECT_GE(found.at("operations"), static_cast<double>(options.operations));
  std::printf("%.0f operations/s over %.0f commands\n", all[0].values[0], found.at("commands"));
  // It was a soak: all of this happened.
  for (char const* what :
       {"injected_errors", "injected_drops", "expired", "refills", "write_commands", "evictions", "queue_resets"}) {
    EXPECT_GT(found.at(what), 0) << what;
  }
}

// Without faults nothing fails, and no flush has to be repeated.
TEST_P(soak_test, a_good_drive_fails_nothing) {
  bench::soak_options options = small(GetParam());
  options.operations = operations / 5;
  options.error_ppm = options.delay_ppm = options.drop_ppm = options.late_ppm = 0;
  options.timeout_ms = 10'000;
  const auto found = bench::run_soak_benchmark(options)[0].details;
  for (char const* what : {"failed_operations", "errors", "expired", "strays", "failed_flushes", "queue_resets"}) {
    EXPECT_EQ(found.at(what), 0) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(directories, soak_test, testing::Values(directory_kind::direct, directory_kind::set_associative),
                         [](auto const& kind) {
                           return kind.param == directory_kind::direct ? std::string("direct") : std::string("set_associative");
                         });

TEST(soak, options_that_cannot_be_are_refused_in_one_sentence) {
  const auto refused = [](auto const& change) {
    bench::soak_options options = small(directory_kind::direct);
    change(options);
    try {
      bench::run_soak_benchmark(options);
      return std::string("not refused");
    } catch (error const& why) {
      EXPECT_EQ(error_kind::bad_input, why.kind());
      return std::string(why.what());
    }
  };
  EXPECT_EQ("run the soak: 0 operations or a timeout of 0 ms: ask for 1 or more", refused([](auto& o) { o.operations = 0; }));
  EXPECT_EQ("run the soak: a cache of half the data and more brings nothing in: ask for less",
            refused([](auto& o) { o.cache_bytes = o.bytes; }));
  EXPECT_EQ("run the soak: 1000001 of a million: at most all", refused([](auto& o) { o.drop_ppm = 1'000'001; }));
  EXPECT_NE(std::string::npos, refused([](auto& o) { o.bytes = 3 << 20; }).find("ask for a power of two"));
}

TEST(soak, a_run_that_takes_too_long_says_so) {
  bench::soak_options options = small(directory_kind::direct);
  options.operations = 1'000'000'000;
  options.seconds = 1;
  options.drop_ppm = options.late_ppm = 0;
  try {
    bench::run_soak_benchmark(options);
    FAIL() << "it did not";
  } catch (error const& why) {
    EXPECT_EQ(error_kind::world, why.kind());
    EXPECT_STREQ("run the soak: it took longer than 1 s: ask for fewer operations", why.what());
  }
}

}  // namespace
}  // namespace penstock::test
