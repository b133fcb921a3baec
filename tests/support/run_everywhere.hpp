// Runs one test body under everything that stands for a thread_group on the CPU. cuda_main.cuh and run_on_device.cuh do the
// same for real threads.
//
// A body is a functor: template <thread_group G> void operator()(G const& g, test_context const& c) const, called by every
// thread. Two optional members run on the calling thread before and after each run: `prepare(run_shape)`, which makes fresh
// state, and `verify(check_report&, run_shape)`.
#pragma once

#include "support/emulated_block.hpp"
#include "support/emulated_warp.hpp"
#include "support/expect_clean.hpp"
#include "support/test_context.hpp"

#include <cstdlib>
#include <random>
#include <utility>

namespace penstock::test {

/// Sanitizers make every yield among many threads dear, and find a race in the first rounds or not at all.
#if defined(PENSTOCK_TSAN) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool yields_are_dear = true;
#else
inline constexpr bool yields_are_dear = false;
#endif

/// How much of everything. Each is the number of threads, warps or repetitions.
struct everywhere {
  u32 lone_threads = yields_are_dear ? 4 : 8;
  u32 warps = yields_are_dear ? 2 : 3;       ///< in the run of several whole warps
  u32 partitions = yields_are_dear ? 2 : 6;  ///< runs of two warps whose lanes are split at random
};

/// For bodies whose threads wait for each other all the time.
inline constexpr everywhere for_waiting_threads = yields_are_dear ? everywhere{.lone_threads = 3, .warps = 1, .partitions = 1}
                                                                  : everywhere{.lone_threads = 4, .warps = 2, .partitions = 3};

/// Printed with each failure; PENSTOCK_TEST_SEED=n repeats a run.
inline u64 test_seed() {
  char const* given = std::getenv("PENSTOCK_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

/// One run: `start(report, shape)` runs all threads to their end.
template <class Body, class Start>
void run_one(Body& body, std::string const& name, run_shape shape, std::source_location caller, Start const& start) {
  const std::string where = name + ", seed " + std::to_string(shape.seed);
  check_report report;
  try {
    if constexpr (requires { body.prepare(shape); }) body.prepare(shape);
    start(report, shape);
    if constexpr (requires { body.verify(report, shape); }) body.verify(report, shape);
    expect_clean(report, where, caller);
  } catch (std::exception const& error) {
    ADD_FAILURE_AT(caller.file_name(), static_cast<int>(caller.line())) << where << ": " << error.what();
  }
}

template <class Body>
void run_lone(Body& body, u32 threads, u64 seed, std::source_location caller = std::source_location::current()) {
  const std::string name = std::to_string(threads) + " lone threads";
  run_one(body, name, {threads, threads, seed}, caller, [&](auto& report, run_shape shape) {
    run_threads(threads, [&](u32 i) { std::as_const(body)(lone_thread(), test_context{&report, shape, i, i}); });
  });
}

/// Warp w consists of the groups masks[w].
template <class Body>
void run_warps(Body& body, std::string const& name, std::vector<std::vector<lane_mask>> const& masks, u64 seed,
               std::source_location caller = std::source_location::current()) {
  const u32 bound = 32 * static_cast<u32>(masks.size());
  std::vector<lane_assignment> lanes;
  for (u32 w = 0; w < masks.size(); ++w) {
    for (lane_mask mask : masks[w]) assign_group(lanes, w, mask);
  }
  run_one(body, name, {bound, bound, seed}, caller, [&](auto& report, run_shape shape) {
    run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const& a) {
      std::as_const(body)(g, test_context{&report, shape, 32 * a.warp + lowest(a.group), 32 * a.warp + a.lane});
    });
  });
}

/// For code that is generic over the width of the mask.
template <class Body>
void run_block(Body& body, u32 lanes, u64 seed, std::source_location caller = std::source_location::current()) {
  run_one(body, "block of " + std::to_string(lanes), {1, lanes, seed}, caller, [&](auto& report, run_shape shape) {
    run_emulated_block(lanes,
                       [&](emulated_block const& g) { std::as_const(body)(g, test_context{&report, shape, 0, g.rank()}); });
  });
}

/// Lone threads, a whole warp, several warps, and warps whose lanes are split at random. Failures are gtest failures that name
/// the run and its seed, at the caller's line.
template <class Body>
void run_everywhere(Body body, everywhere how = {}, std::source_location caller = std::source_location::current()) {
  const u64 seed = test_seed();
  run_lone(body, 1, seed, caller);
  run_lone(body, how.lone_threads, seed, caller);
  run_warps(body, "one whole warp", {{0xffffffffu}}, seed, caller);
  const std::vector<std::vector<lane_mask>> whole(how.warps, {0xffffffffu});
  run_warps(body, std::to_string(how.warps) + " whole warps", whole, seed, caller);
  std::mt19937_64 rng(seed);
  for (u32 i = 0; i < how.partitions; ++i) {
    const std::vector<std::vector<lane_mask>> masks = {random_partition(rng, 0xffffffffu), random_partition(rng, 0xffffffffu)};
    std::string name = "two split warps";
    for (auto const& parts : masks) {
      for (lane_mask part : parts) name += " " + hex(part);
    }
    run_warps(body, name, masks, seed, caller);
  }
}

}  // namespace penstock::test
