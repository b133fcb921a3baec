// A cache over pinned host memory: warps copy the lines that they miss.
#include "device/array_test_body.hpp"

#include "penstock/runtime/line_cache.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(64);
constexpr u64 bytes = 1 << 20;

PENSTOCK_CUDA_TEST(lines_that_warps_copy_themselves) {
  const auto on = open_executor("cuda");
  const buffer<u64> memory(on->memory(), memory_kind::shared, bytes / sizeof(u64));
  for (u64 w = 0; w < memory.size(); ++w) memory.data()[w] = stamp(w);
  for (const directory_kind directory : both_directories) {
    cache_options options;
    options.line_bytes = 512;
    options.bytes = 518 * options.line_bytes;
    options.directory = directory;
    line_cache cache(*on, {{"memory", bytes, {}, false, memory.data()}}, options);
    const auto compare = [&]<class T>(T) {
      const array_view<T> resident(reinterpret_cast<T const*>(memory.data()), bytes / sizeof(T));
      run_warps_on_device(same_elements_body<T>{resident, cache.array<T>(0, 0, bytes / sizeof(T)), 2}, report, warps);
      cache.check_faults();
    };
    compare(u32{});
    compare(u64{});
    compare(wide_element{});
    PENSTOCK_CHECK(report, cache.stats(0).evictions > 0 && cache.stats(0).errors == 0);
  }
}

}  // namespace
}  // namespace penstock::test
