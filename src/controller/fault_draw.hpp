// Which faults hit one command: the same for the same seed, queue and number, on every executor.
#pragma once

#include "penstock/controller/model_controller.hpp"

namespace penstock::controllers {

/// splitmix64: a counter and a bijective mix, so that neighbouring seeds have nothing in common.
class random_draws {
 public:
  PENSTOCK_FN random_draws(u64 seed, u16 queue, u64 number) : state_(mix(mix(mix(seed) + queue) + number)) {}

  PENSTOCK_FN u64 next() { return mix(state_ += step); }
  PENSTOCK_FN double next_share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  PENSTOCK_FN u64 below(u64 bound) { return next() % bound; }

 private:
  static constexpr u64 step = 0x9e3779b97f4a7c15u;

  PENSTOCK_FN static u64 mix(u64 x) {
    x += step;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }

  u64 state_;
};

/// What the draws need of a fault_plan.
struct fault_shares {
  u64 seed = 0;
  double error = 0, delay = 0, drop = 0, duplicate = 0, late = 0, unknown_identifier = 0;
  u16 const* error_codes = nullptr;
  u64 error_code_count = 0;
};

inline fault_shares shares_of(fault_plan const& plan) {
  return {plan.seed,
          plan.error,
          plan.delay,
          plan.drop,
          plan.duplicate,
          plan.late,
          plan.unknown_identifier,
          plan.error_codes.data(),
          plan.error_codes.size()};
}

/// Throws bad_input for a plan that makes no sense.
void check_fault_plan(fault_plan const& plan);

struct fault_draw {
  u16 error_code = 0;  ///< 0: none
  bool delay = false;
  bool drop = false;
  bool duplicate = false;
  bool late = false;
  bool unknown_identifier = false;
  u64 random = 0;  ///< for the choice of the unknown identifier
};

/// Every fault is drawn for by itself, so that one command may have several and shares may add up to more than 1. A dropped
/// completion can't be doubled or preceded.
PENSTOCK_FN inline fault_draw draw_faults(fault_shares const& plan, u16 queue, u64 number) {
  random_draws draws(plan.seed, queue, number);
  fault_draw result;
  const bool error = draws.next_share() < plan.error;
  const u64 which = draws.next();
  if (error) result.error_code = plan.error_codes[which % plan.error_code_count];
  result.delay = draws.next_share() < plan.delay;
  result.drop = draws.next_share() < plan.drop;
  result.duplicate = draws.next_share() < plan.duplicate && !result.drop;
  result.late = draws.next_share() < plan.late;
  result.unknown_identifier = draws.next_share() < plan.unknown_identifier && !result.drop;
  result.random = draws.next();
  return result;
}

}  // namespace penstock::controllers
