#include "device/write_test_body.hpp"

#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/queue_service.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(16);
const u32 rounds = cuda_test_scale() == 1 ? 4 : 1;

/// A writable cache over memory that host threads serve, through bounce buffers for reads and pinned buffers for writes.
struct written_bytes {
  explicit written_bytes(cache_shape shape)
      : media(shape.media_bytes), times{on->memory(), memory_kind::local, media.size() / 8} {
    shape.writable = true;
    shape.timeout_ns = scaled_time(shape.timeout_ns);
    software_options options;
    options.threads = 2;
    software = std::make_unique<software_controller>(options);
    software->add_namespace(media.bytes());
    fixture = std::make_unique<cache_fixture>(*on, *software, 1, shape);
  }

  /// All that was stored is in the media: of element i, expected(i, its word of `times`).
  void check(check_report& report, u64 (*expected)(u64, u64) = written) {
    fixture->cache().check_faults();
    fixture->flush();
    std::vector<u32> seen(times.size());
    times.read(seen);
    for (u64 i = 0; i < seen.size(); ++i) PENSTOCK_CHECK_EQ(report, expected(i, seen[i]), media.words()[i]);
    const cache_stats stats = fixture->cache().stats(0);
    PENSTOCK_CHECK_EQ(report, stats.misses + stats.prefetches, stats.fills);
    PENSTOCK_CHECK(report, stats.write_backs > 0);
  }

  stamped_media media;
  std::unique_ptr<executor> on = open_executor("cuda");
  buffer<u32> times;
  std::unique_ptr<software_controller> software;
  std::unique_ptr<cache_fixture> fixture;
};

const cache_shape shapes[] = {{.frames = 512, .media_bytes = 1 << 20, .queues = 4},
                              {.frames = 1024, .line_bytes = 4096, .media_bytes = 1 << 24, .queues = 4},
                              {.frames = 2100, .media_bytes = 1 << 20, .queues = 4, .write_back = {.most_dirty = 1}}};

template <class Run>
void for_all_shapes(Run const& run) {
  for (cache_shape const& shape : shapes) {
    for (const directory_kind directory : both_directories) {
      written_bytes cached(with_directory(shape, directory));
      run(cached);
    }
  }
}

PENSTOCK_CUDA_TEST(write_elements) {
  for_all_shapes([&](written_bytes& cached) {
    for (const u64 span : {u64{0}, u64{4096}}) {
      run_warps_on_device(written_elements_body{cached.fixture->writable(), cached.times.data(), rounds, span}, report, warps);
    }
    cached.check(report);
  });
}

PENSTOCK_CUDA_TEST(write_spans) {
  for_all_shapes([&](written_bytes& cached) {
    line_cache& cache = cached.fixture->cache();
    const written_spans_body body{cached.fixture->writable(), cache.writable<u8>(0, 0, cached.media.size()),
                                  cached.times.data(), rounds, 3000};
    run_warps_on_device(body, report, warps);
    cached.check(report);
  });
}

PENSTOCK_CUDA_TEST(write_sums) {
  for_all_shapes([&](written_bytes& cached) {
    run_warps_on_device(added_spans_body{cached.fixture->writable(), cached.times.data(), rounds, 3000}, report, warps);
    cached.check(report, added_spans_body::expected);
  });
}

PENSTOCK_CUDA_TEST(write_by_lanes_that_part) {
  for_all_shapes([&](written_bytes& cached) {
    run_warps_on_device(parted_lanes_body{cached.fixture->writable(), cached.times.data(), 4 * rounds}, report, warps);
    cached.check(report, parted_lanes_body::expected);
  });
}

PENSTOCK_CUDA_TEST(write_by_lanes_that_part_and_are_named) {
  for_all_shapes([&](written_bytes& cached) {
    const parted_lanes_body body{cached.fixture->writable(), cached.times.data(), 4 * rounds, true};
    run_warps_on_device(body, report, warps);
    cached.check(report, parted_lanes_body::expected);
  });
}

PENSTOCK_CUDA_TEST(write_batches) {
  for_all_shapes([&](written_bytes& cached) {
    run_warps_on_device(written_batches_body{cached.fixture->writable(), cached.times.data(), rounds, 3000}, report, warps);
    cached.check(report);
  });
}

PENSTOCK_CUDA_TEST(write_batches_of_sums) {
  for_all_shapes([&](written_bytes& cached) {
    run_warps_on_device(added_batches_body{cached.fixture->writable(), cached.times.data(), rounds, 300}, report, warps);
    cached.check(report, added_batches_body::expected);
  });
}

PENSTOCK_CUDA_TEST(write_counts) {
  for_all_shapes([&](written_bytes& cached) {
    line_cache& cache = cached.fixture->cache();
    const u64 bytes = cached.media.size();
    counted_elements_body body{cached.fixture->writable(),
                               cache.writable<u32>(0, 0, bytes / 4),
                               cache.writable<float>(0, 0, bytes / 4),
                               cache.writable<double>(0, 0, bytes / 8),
                               cache.writable<int>(0, 0, bytes / 4),
                               4};
    const u64 apart = counted_elements_body::apart;
    const std::span<std::byte> bytes_of_media = cached.media.bytes();
    for (u64 k = 0; k < 8; ++k) {
      const u64 start = k == 5 ? ~0ull : 0;
      std::memcpy(bytes_of_media.data() + k * apart * 8, &start, sizeof start);
    }
    run_warps_on_device(body, report, warps);
    cached.fixture->cache().check_faults();
    cached.fixture->flush();
    const auto at = [&](u64 k) { return cached.media.words()[k * apart]; };
    const u64 changes = at(0);  // of all runs together
    PENSTOCK_CHECK(report, changes >= u64{warps} * 32 * 4);
    PENSTOCK_CHECK_EQ(report, 3 * changes, at(1));
    PENSTOCK_CHECK_EQ(report, changes, at(2));
    PENSTOCK_CHECK_EQ(report, std::bit_cast<u32>(static_cast<float>(changes)), static_cast<u32>(at(3)));
    PENSTOCK_CHECK_EQ(report, std::bit_cast<u64>(0.5 * static_cast<double>(changes)), at(4));
    PENSTOCK_CHECK_EQ(report, static_cast<u32>(-static_cast<int>(warps * 32)), static_cast<u32>(at(6)));
    PENSTOCK_CHECK_EQ(report, changes, at(7));
  });
}

// All kernels once with nothing to do, so that they are loaded and their stacks made before the resident one starts.
PENSTOCK_CUDA_TEST_BESIDE(write_beside_a_queue_service) {
  for (const directory_kind directory : both_directories) {
    written_bytes cached(with_directory(shapes[1], directory));
    queue_service service(*cached.on, cached.fixture->cache(), {.units = 2, .idle_timeout_ns = scaled_time(8 * one_second_ns)});
    written_elements_body body{cached.fixture->writable(), cached.times.data(), 0};
    run_warps_on_device(body, report, warps);
    service.start();
    body.rounds = 8;
    run_warps_on_device(body, report, warps);
    service.stop();
    PENSTOCK_CHECK(report, !service.gave_up());
    cached.check(report);
  }
}

}  // namespace
}  // namespace penstock::test
