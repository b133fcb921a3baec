// Algorithms over graphs in real warps.
#include "device/graph_test_body.hpp"

#include "support/run_on_device.cuh"

namespace penstock::test {
namespace {

template <u32 Width>
void check_on_device(check_report& report, edges_at where) {
  const auto on = open_executor("cuda");
  check_algorithms(*on, where, report, cuda_test_seed(), false, [&](u64 items, auto const& body) {
    launch<Width>(*on, items, body);
    on->synchronize();
  });
}

PENSTOCK_CUDA_TEST(graph_algorithms_in_warps) { check_on_device<32>(report, edges_at::memory); }
PENSTOCK_CUDA_TEST(graph_algorithms_in_parts_of_warps) { check_on_device<8>(report, edges_at::memory); }
PENSTOCK_CUDA_TEST(graph_algorithms_behind_a_cache) { check_on_device<32>(report, edges_at::cache); }
PENSTOCK_CUDA_TEST(graph_algorithms_on_small_lines) { check_on_device<32>(report, edges_at::small_lines); }

}  // namespace
}  // namespace penstock::test
