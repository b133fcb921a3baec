// Queries by lone threads and emulated warps.
#include "device/lsh_fixture.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

struct checked_queries : lsh_body {
  lsh_fixture* fixture;

  explicit checked_queries(lsh_fixture* f) : lsh_body(f->body()), fixture(f) {}
  void prepare(run_shape shape) { fixture->prepare(shape); }
  void verify(check_report& report, run_shape) const { fixture->verify(report); }
};

class lsh_test : public testing::TestWithParam<u32> {};

TEST_P(lsh_test, finds_what_plain_code_does) {
  const auto on = open_executor("cpu");
  lsh_fixture fixture(*on, 256, GetParam());
  run_everywhere(checked_queries(&fixture), for_waiting_threads);
}

INSTANTIATE_TEST_SUITE_P(, lsh_test, testing::Values(7, 20, 400));

}  // namespace
}  // namespace penstock::test
