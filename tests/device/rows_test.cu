#include "device/rows_test_body.hpp"
#include "support/cuda_main.cuh"

namespace penstock::test {
namespace {

PENSTOCK_CUDA_TEST(rows_are_gathered_by_parts_of_warps) {
  const auto on = open_executor("cuda");
  check_gathers(on->memory(), report, cuda_test_seed(),
                [&](auto width, u64 items, auto const& body) { launch<decltype(width)::value>(*on, items, body); });
}

}  // namespace
}  // namespace penstock::test
