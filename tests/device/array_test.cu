#include "device/array_bed.cuh"

namespace penstock::test {
namespace {

PENSTOCK_CUDA_TEST(array_references_follow_their_index) {
  for (const directory_kind directory : both_directories) {
    array_bed b(with_directory({.frames = 128, .media_bytes = array_bytes / 4, .queues = 4}, directory));
    run_warps_on_device(follow_body<u64>{b.resident<u64>(), b.stored<u64>()}, report, array_warps);
  }
}

PENSTOCK_CUDA_TEST(array_runs_are_read_in_pieces) {
  for (const directory_kind directory : both_directories) {
    array_bed b(with_directory({.frames = 128, .media_bytes = array_bytes / 4, .queues = 4}, directory));
    run_warps_on_device(runs_body<u32>{b.resident<u32>(), b.stored<u32>(), b.resident<u64>(), b.stored<u64>(), 100}, report,
                        array_warps);
    run_warps_on_device(runs_body<u64>{b.resident<u64>(), b.stored<u64>(), b.resident<u64>(), b.stored<u64>(), 100}, report,
                        array_warps);
    run_warps_on_device(runs_body<u64, 1>{b.resident<u64>(), b.stored<u64>(), b.resident<u64>(), b.stored<u64>(), 100}, report,
                        array_warps);
    b.fixture->cache().check_faults();
  }
}

PENSTOCK_CUDA_TEST(array_spans_hold_each_element_once) {
  array_bed b({.frames = 256, .media_bytes = array_bytes / 4, .queues = 4});
  run_warps_on_device(spans_body<u32>{b.resident<u32>(), b.stored<u32>(), 4}, report, 8);
  b.fixture->cache().check_faults();
}

PENSTOCK_CUDA_TEST(array_lines_held_by_groups) {
  for (const directory_kind directory : both_directories) {
    array_bed b(with_directory({.frames = 8192, .line_bytes = 4096, .media_bytes = array_bytes, .queues = 4}, directory));
    run_warps_on_device(held_lines_body{b.resident<u64>(), b.stored<u64>()}, report, 8);
  }
}

}  // namespace
}  // namespace penstock::test
