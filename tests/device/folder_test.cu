// Files by warps and their parts, and by threads that have lost theirs.
#include "device/folder_fixture.hpp"
#include "support/run_on_device.cuh"

#include <cstdlib>

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(4);

folder_options small_folder(u64 line_bytes) {
  folder_options options;
  options.cache.bytes = 4 << 20;
  options.cache.line_bytes = line_bytes;
  options.max_calls = 24;  // fewer than ask
  return options;
}

template <class Body>
void run_in_folder(check_report& report, u64 line_bytes) {
  const auto on = open_executor("cuda");
  folder_fixture fixture(*on, threads_of_warps(warps), small_folder(line_bytes));
  run_warps_on_device(Body{fixture.bed()}, report, warps);
  PENSTOCK_CHECK_EQ(report, 0u, fixture.files().open_files());
}

PENSTOCK_CUDA_TEST_BESIDE(folder_files_have_their_bytes) { run_in_folder<own_file_body>(report, 4096); }
PENSTOCK_CUDA_TEST_BESIDE(folder_files_have_their_bytes_on_short_lines) { run_in_folder<own_file_body>(report, 512); }
PENSTOCK_CUDA_TEST_BESIDE(folder_names_lead_nowhere_else) { run_in_folder<names_body>(report, 4096); }

PENSTOCK_CUDA_TEST_BESIDE(folder_names_lead_to_the_files_that_got_them_last) { run_in_folder<shared_names_body>(report, 512); }

PENSTOCK_CUDA_TEST_BESIDE(folder_maps_are_the_bytes_of_the_file) { run_in_folder<mapped_records_body>(report, 512); }

// PENSTOCK_CROWD_ROUNDS: reads of each group.
PENSTOCK_CUDA_TEST_BESIDE(folder_of_few_frames_each_read_ends) {
  const auto on = open_executor("cuda");
  folder_options options = small_folder(512);
  options.cache.bytes = 16 * 512;  // one set
  folder_fixture fixture(*on, threads_of_warps(warps), options);
  char const* const rounds = std::getenv("PENSTOCK_CROWD_ROUNDS");
  const u32 given = rounds != nullptr ? static_cast<u32>(std::atoll(rounds)) : crowd_body{}.rounds;
  run_warps_on_device(crowd_body{fixture.bed(), given}, report, warps);
}

PENSTOCK_CUDA_TEST_BESIDE(folder_bytes_that_are_written_once_leave_others_alone) {
  const auto on = open_executor("cuda");
  folder_fixture fixture(*on, threads_of_warps(warps), small_folder(512));
  const run_shape shape{threads_of_warps(warps), threads_of_warps(warps), cuda_test_seed()};
  const written_once_body body{fixture.bed()};
  const auto run = [&](auto* kernel, u32 groups) {
    fixture.write_hosts_part(shape);
    launch(launch_shape(warps / 4, 128), kernel, body, &report, shape.seed);
    fixture.check_written_once(report, shape, groups);
  };
  run(run_lone_kernel<written_once_body>, shape.threads);
  run(run_parts_kernel<written_once_body, 32>, warps);
  run(run_parts_kernel<written_once_body, 8>, 4 * warps);
}

PENSTOCK_CUDA_TEST_BESIDE(folder_records_are_appended_once_each) {
  const auto on = open_executor("cuda");
  folder_fixture fixture(*on, threads_of_warps(warps), small_folder(4096));
  const run_shape shape{threads_of_warps(warps), threads_of_warps(warps), cuda_test_seed()};
  const auto check = [&](u32 groups) {
    fixture.check_log(report, shape, groups);
    fixture.remove_log(shape);
  };
  const shared_log_body body{fixture.bed()};
  launch(launch_shape(warps / 4, 128), run_lone_kernel<shared_log_body>, body, &report, shape.seed);
  check(shape.threads);
  launch(launch_shape(warps / 4, 128), run_parts_kernel<shared_log_body, 32>, body, &report, shape.seed);
  check(warps);
  launch(launch_shape(warps / 4, 128), run_parts_kernel<shared_log_body, 8>, body, &report, shape.seed);
  check(4 * warps);
}

}  // namespace
}  // namespace penstock::test
