#include "device/ablation_test_body.hpp"
#include "device/async_read_test_body.hpp"
#include "device/cache_test_body.hpp"
#include "device/read_ahead_test_body.hpp"

#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/queue_service.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(64);

struct cache_case {
  cache_shape shape;
  u32 rounds = 4;
  bool pins = false;
  bool ahead = false;
  u32 hot = 0;
  u32 warps = 64;
};

void run_cached_reads(check_report& report, cache_case test, directory_kind directory) {
  test.shape = with_directory(test.shape, directory);
  // Who holds a line must not wait for a set that others fill with theirs: room for all the lines of every set.
  const u64 lines = test.shape.media_bytes / test.shape.line_bytes;
  if (test.pins && directory == directory_kind::set_associative) test.shape.frames = round_up(lines + lines / 32, set_ways);
  stamped_media media(test.shape.media_bytes);
  model_options options;
  options.threads = 2;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  model_controller model(options);
  model.add_namespace(media.bytes());
  const auto on = open_executor("cuda");
  test.shape.timeout_ns = scaled_time(test.shape.timeout_ns);
  cache_fixture fixture(*on, model, 1, test.shape);
  cached_reads_body body;
  body.words = fixture.words();
  body.bytes = fixture.bytes();
  body.rounds = test.rounds;
  body.hot = test.hot;
  body.pins = test.pins;
  body.ahead = test.ahead;
  run_warps_on_device(body, report, scaled_warps(test.warps));
  fixture.cache().check_faults();
  const cache_stats stats = fixture.cache().stats(0);
  PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
}

void run_cached_reads(check_report& report, cache_case const& test) {
  for (const directory_kind directory : both_directories) run_cached_reads(report, test, directory);
}

PENSTOCK_CUDA_TEST(cache_small) { run_cached_reads(report, {{.frames = 64, .depth = 64}, 2}); }
PENSTOCK_CUDA_TEST(cache_roomy) { run_cached_reads(report, {{.frames = 4096, .media_bytes = 1 << 22, .queues = 4}, 8}); }
PENSTOCK_CUDA_TEST(cache_prefetched) {
  run_cached_reads(report, {{.frames = 8192, .media_bytes = 1 << 23, .queues = 8, .depth = 128}, 8, false, true});
}
PENSTOCK_CUDA_TEST(cache_pinned_lines) {
  run_cached_reads(report, {{.frames = 8192, .line_bytes = 4096, .media_bytes = 1 << 26, .queues = 8}, 4, true});
}
/// A hundred thousand threads and 64 frames: half of them are filled at a time, in order of arrival, and every thread ends.
PENSTOCK_CUDA_TEST(cache_crowded) { run_cached_reads(report, {{.frames = 64, .depth = 64}, 1, false, false, 0, 3200}); }
PENSTOCK_CUDA_TEST(cache_hot_lines) { run_cached_reads(report, {{.frames = 8, .queues = 4}, 8, false, false, 16}); }

/// A cache over a modelled drive that answers in any order.
struct cached_bytes {
  explicit cached_bytes(cache_shape shape) : media(shape.media_bytes) {
    model_options options;
    options.threads = 2;
    options.faults.reorder = true;
    options.faults.poison_fetched = true;
    model = std::make_unique<model_controller>(options);
    model->add_namespace(media.bytes());
    fixture = std::make_unique<cache_fixture>(*on, *model, 1, shape);
  }

  stamped_media media;
  std::unique_ptr<executor> on = open_executor("cuda");
  std::unique_ptr<model_controller> model;
  std::unique_ptr<cache_fixture> fixture;
};

PENSTOCK_CUDA_TEST(cache_read_async) {
  for (const u64 frames : {512u, 8192u}) {
    for (const directory_kind directory : both_directories) {
      cached_bytes cached(with_directory({.frames = frames, .media_bytes = 1 << 22, .queues = 4}, directory));
      async_reads_body body{cached.fixture->words(), cached.fixture->bytes(), 2};
      run_warps_on_device(body, report, 16);
      cached.fixture->cache().check_faults();
      const cache_stats stats = cached.fixture->cache().stats(0);
      PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
      PENSTOCK_CHECK(report, stats.prefetches > 0);
    }
  }
}

// Into a cache with room for everything (in sets, for four times as much) each line comes once.
PENSTOCK_CUDA_TEST(cache_read_ahead) {
  for (const directory_kind directory : both_directories) {
    cache_shape shape{.frames = 32768, .media_bytes = 1 << 22, .queues = 4, .depth = 256};
    shape.read_ahead_bytes = 512 * 512;
    cached_bytes cached(with_directory(shape, directory));
    run_warps_on_device(reads_in_order_body{cached.fixture->words()}, report, warps);
    cached.fixture->cache().check_faults();
    const cache_stats stats = cached.fixture->cache().stats(0);
    PENSTOCK_CHECK_EQ(report, (1u << 22) / 512, stats.fills);
    PENSTOCK_CHECK(report, stats.prefetches > 0);
  }
}

// All kernels once with nothing to do, so that they are loaded and their stacks made before the resident one starts.
PENSTOCK_CUDA_TEST_BESIDE(cache_beside_a_queue_service) {
  for (const directory_kind directory : both_directories) {
    cached_bytes cached(with_directory({.frames = 4096, .media_bytes = 1 << 22, .queues = 4}, directory));
    queue_service service(*cached.on, cached.fixture->cache(), {.units = 2, .idle_timeout_ns = scaled_time(8 * one_second_ns)});
    async_reads_body body{cached.fixture->words(), cached.fixture->bytes(), 0};
    run_warps_on_device(body, report, 16);
    service.start();
    body.rounds = 2;
    run_warps_on_device(body, report, 16);
    service.stop();
    PENSTOCK_CHECK(report, !service.gave_up());
    cached.fixture->cache().check_faults();
    const cache_stats stats = cached.fixture->cache().stats(0);
    PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
  }
}

PENSTOCK_CUDA_TEST(cache_without_this_and_that) {
  for (const ablations without : {ablations{.cache = true}, ablations{.coalescing = true}, ablations{.validation = true}}) {
    for (const directory_kind directory : both_directories) {
      cached_bytes cached(with_directory({.frames = 4096, .media_bytes = 1 << 22, .queues = 4, .without = without}, directory));
      run_warps_on_device(ablated_reads_body{cached.fixture->words(), 2}, report, 16);
      cached.fixture->cache().check_faults();
      const cache_stats stats = cached.fixture->cache().stats(0);
      PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
      if (without.cache) PENSTOCK_CHECK_EQ(report, 0, stats.joins + stats.prefetches + stats.evictions);
    }
  }
}

}  // namespace
}  // namespace penstock::test
