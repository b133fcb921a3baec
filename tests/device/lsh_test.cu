// Queries by warps and their parts.
#include "device/lsh_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(4);

PENSTOCK_CUDA_TEST_BESIDE(lsh_finds_what_plain_code_does) {
  for (u32 room : {7u, 400u}) {
    const auto on = open_executor("cuda");
    const run_shape shape{threads_of_warps(warps), threads_of_warps(warps), cuda_test_seed()};
    lsh_fixture fixture(*on, threads_of_warps(warps), room);
    const lsh_body body = fixture.body();
    const auto run = [&](auto const& kernel) {
      fixture.prepare(shape);
      launch(launch_shape(warps / 4, 128), kernel, body, &report, shape.seed);
      fixture.verify(report);
    };
    run(run_lone_kernel<lsh_body>);
    run(run_parts_kernel<lsh_body, 32>);
    run(run_parts_kernel<lsh_body, 8>);
  }
}

}  // namespace
}  // namespace penstock::test
