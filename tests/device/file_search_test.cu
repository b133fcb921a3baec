// Searches by warps and their parts.
#include "device/file_search_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(4);

void search_for(check_report& report, std::string const& pattern, bool ignore_case) {
  const auto on = open_executor("cuda");
  const run_shape shape{threads_of_warps(warps), threads_of_warps(warps), cuda_test_seed()};
  file_search_fixture fixture(*on, threads_of_warps(warps), pattern, ignore_case);
  const file_search_body body = fixture.body();
  const auto run = [&](auto const& kernel) {
    fixture.prepare(shape);
    launch(launch_shape(warps / 4, 128), kernel, body, &report, shape.seed);
    fixture.verify(report);
  };
  run(run_lone_kernel<file_search_body>);
  run(run_parts_kernel<file_search_body, 32>);
  run(run_parts_kernel<file_search_body, 8>);
}

PENSTOCK_CUDA_TEST_BESIDE(file_search_finds_what_a_plain_loop_does) {
  search_for(report, "a", false);
  search_for(report, "bxa", true);
  search_for(report, std::string(255, 'a'), false);
}

}  // namespace
}  // namespace penstock::test
