#include "device/array_test_body.hpp"

#include "penstock/host/software_controller.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(64);
constexpr u64 bytes = 1 << 20;

/// The same bytes in HBM and behind a cache.
struct both {
  explicit both(cache_shape shape) : media(shape.media_bytes) {
    shape.timeout_ns = scaled_time(shape.timeout_ns);
    software_options options;
    options.threads = 2;
    software = std::make_unique<software_controller>(options);
    software->add_namespace(media.bytes());
    fixture = std::make_unique<cache_fixture>(*on, *software, 1, shape);
    copy = {on->memory(), memory_kind::local, shape.media_bytes};
    on->memory().write(copy.data(), media.bytes().data(), shape.media_bytes);
  }
  template <class T>
  array_view<T> resident() {
    return {reinterpret_cast<T const*>(copy.data()), copy.size() / sizeof(T)};
  }
  template <class T>
  array_view<T> stored() {
    return fixture->cache().array<T>(0, 0, copy.size() / sizeof(T));
  }

  stamped_media media;
  std::unique_ptr<executor> on = open_executor("cuda");
  std::unique_ptr<software_controller> software;
  buffer<u8> copy;
  std::unique_ptr<cache_fixture> fixture;
};

template <class T>
void compare_elements(check_report& report) {
  for (const directory_kind directory : both_directories) {
    both b(with_directory({.frames = 512, .media_bytes = bytes, .queues = 4}, directory));
    run_warps_on_device(same_elements_body<T>{b.resident<T>(), b.stored<T>(), 2}, report, warps);
    b.fixture->cache().check_faults();
  }
}

template <class T>
void tell_elements(check_report& report) {
  for (const directory_kind directory : both_directories) {
    both b(with_directory({.frames = 512, .media_bytes = bytes, .queues = 4}, directory));
    run_warps_on_device(told_elements_body<T>{b.resident<T>(), b.stored<T>(), 2}, report, warps);
    b.fixture->cache().check_faults();
  }
}

PENSTOCK_CUDA_TEST(array_elements_with_their_status) {
  tell_elements<u64>(report);
  tell_elements<element12>(report);
}

PENSTOCK_CUDA_TEST(array_of_bytes) { compare_elements<u8>(report); }
PENSTOCK_CUDA_TEST(array_of_16_bits) { compare_elements<u16>(report); }
PENSTOCK_CUDA_TEST(array_of_32_bits) { compare_elements<u32>(report); }
PENSTOCK_CUDA_TEST(array_of_16_bytes) { compare_elements<wide_element>(report); }
PENSTOCK_CUDA_TEST(array_of_structs_that_straddle_lines) { compare_elements<element12>(report); }

PENSTOCK_CUDA_TEST(array_references_follow_their_index) {
  for (const directory_kind directory : both_directories) {
    both b(with_directory({.frames = 128, .media_bytes = bytes / 4, .queues = 4}, directory));
    run_warps_on_device(follow_body<u64>{b.resident<u64>(), b.stored<u64>()}, report, warps);
  }
}

PENSTOCK_CUDA_TEST(array_runs_are_read_16_bytes_at_once) {
  for (const directory_kind directory : both_directories) {
    both b(with_directory({.frames = 128, .media_bytes = bytes / 4, .queues = 4}, directory));
    run_warps_on_device(runs_body<u32>{b.resident<u32>(), b.stored<u32>(), 100}, report, warps);
    run_warps_on_device(runs_body<u64>{b.resident<u64>(), b.stored<u64>(), 100}, report, warps);
    b.fixture->cache().check_faults();
  }
}

PENSTOCK_CUDA_TEST(array_spans_hold_each_element_once) {
  both b({.frames = 256, .media_bytes = bytes / 4, .queues = 4});
  run_warps_on_device(spans_body<u32>{b.resident<u32>(), b.stored<u32>(), 4}, report, 8);
  b.fixture->cache().check_faults();
}

PENSTOCK_CUDA_TEST(array_lines_held_by_groups) {
  for (const directory_kind directory : both_directories) {
    both b(with_directory({.frames = 8192, .line_bytes = 4096, .media_bytes = bytes, .queues = 4}, directory));
    run_warps_on_device(held_lines_body{b.resident<u64>(), b.stored<u64>()}, report, 8);
  }
}

}  // namespace
}  // namespace penstock::test
