#include "fault_draw.hpp"

#include "penstock/host/error.hpp"

namespace penstock::controllers {
namespace {

[[noreturn]] void refuse_plan(std::string const& problem) { throw_bad_input("start", "modelled controller", problem); }

}  // namespace

void check_fault_plan(fault_plan const& plan) {
  for (const double share : {plan.error, plan.delay, plan.drop, plan.duplicate, plan.late, plan.unknown_identifier}) {
    if (!(share >= 0 && share <= 1)) refuse_plan("share " + std::to_string(share) + " of a fault: ask for 0 to 1");
  }
  if (plan.error > 0 && plan.error_codes.empty()) refuse_plan("errors without error_codes: name one or more");
}

}  // namespace penstock::controllers
