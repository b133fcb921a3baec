// Which faults hit one command: the same for the same seed, queue and number.
#pragma once

#include "penstock/host/model_controller.hpp"

namespace penstock::far_side {

/// splitmix64: a counter and a bijective mix, so that neighbouring seeds have nothing in common.
class random_draws {
 public:
  random_draws(u64 seed, u16 queue, u64 number) : state_(mix(mix(mix(seed) + queue) + number)) {}

  u64 next() { return mix(state_ += step); }
  double next_share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  u64 below(u64 bound) { return next() % bound; }

 private:
  static constexpr u64 step = 0x9e3779b97f4a7c15u;

  static u64 mix(u64 x) {
    x += step;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }

  u64 state_;
};

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
inline fault_draw draw_faults(fault_plan const& plan, u16 queue, u64 number) {
  random_draws draws(plan.seed, queue, number);
  fault_draw result;
  const bool error = draws.next_share() < plan.error;
  const u64 which = draws.next();
  if (error) result.error_code = plan.error_codes[which % plan.error_codes.size()];
  result.delay = draws.next_share() < plan.delay;
  result.drop = draws.next_share() < plan.drop;
  result.duplicate = draws.next_share() < plan.duplicate && !result.drop;
  result.late = draws.next_share() < plan.late;
  result.unknown_identifier = draws.next_share() < plan.unknown_identifier && !result.drop;
  result.random = draws.next();
  return result;
}

}  // namespace penstock::far_side
