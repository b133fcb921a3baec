// Completions of raw commands: a result word that outlives the wait.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

struct result_sink {
  /// Bit 31 says that a result word holds a packed status.
  static constexpr u32 arrived = 1u << 31;

  struct target {
    u32* result;  ///< 0 until the command is over
  };

  PENSTOCK_FN static void placed(target const&, u16, u16) {}
  PENSTOCK_FN static void finish(target const& to, status outcome) {
    device_ref<u32>(*to.result).store(arrived | pack(outcome), release);  // partner: whoever waits, with acquire
  }
  PENSTOCK_FN static void abandon(target const& to, status outcome, bool) { finish(to, outcome); }
  PENSTOCK_FN static void resolve(target const&, bool) {}
};
static_assert(completion_sink<result_sink>);

}  // namespace penstock
