// Lines that warps make themselves, and victims that a policy of the test's own chooses.
#include "device/own_lines_test_body.hpp"

#include "penstock/runtime/line_cache.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(64);
constexpr u64 words = 1 << 17;

PENSTOCK_CUDA_TEST(lines_of_own_fills_and_an_own_policy) {
  const auto on = open_executor("cuda");
  buffer<u32> fills(on->memory(), memory_kind::shared, 1);
  buffer<u64> turns(on->memory(), memory_kind::local, 1);
  dataset_spec spec{"made words", words * sizeof(u64), {}};
  spec.own_fills = true;
  cache_options options;
  options.line_bytes = 512;
  options.bytes = 518 * options.line_bytes;
  options.directory = directory_kind::direct;
  line_cache cache(*on, {spec}, options);
  using view = filled_cache_view<stamped_lines, turn_policy>;
  const view own{cache.view().with(turn_policy{turns.data(), cache.view().frames}), {~0ull, fills.data()}};
  buffer<view> place(on->memory(), memory_kind::local, 1);
  place.write({&own, 1});
  const auto array = cache.array_through<u64>(place.data(), 0, 0, words);
  run_warps_on_device(own_elements_body<view>{array, ~0ull, 8}, report, warps);
  cache.check_faults();
  const cache_stats stats = cache.stats(0);
  PENSTOCK_CHECK(report, stats.evictions > 0 && stats.errors == 0);
  PENSTOCK_CHECK_EQ(report, stats.fills, u64{*fills.data()});
}

}  // namespace
}  // namespace penstock::test
