// What a completion means to the cache: the fill of a line is over, and the waiters on its entry see it; or a write-back is,
// and a passing thread retires its slot (write_back.hpp).
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/cache/frame_record.hpp"
#include "penstock/cache/write_back.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

struct line_sink {
  struct target {
    u64* entry;  ///< of the line that is brought in
    frame_record* record;
    u32* prefetches_in_flight;    ///< null for a fill that has a waiter
    write_slot* write = nullptr;  ///< not null: a write-back, and the rest is not used
  };

  PENSTOCK_FN static void placed(target const& to, u16 queue, u16 slot) {
    if (to.write == nullptr) to.record->store_command(queue, slot);
  }

  PENSTOCK_FN static void finish(target const& to, status outcome) {
    if (to.write != nullptr) {
      to.write->note(outcome);
      return to.write->end_one();
    }
    // Adds rather than stores: a passer-by's pin may come between. Partner: every acquire of the entry.
    if (outcome.ok()) {
      add_after_fence(*to.entry, entry::publish);
    } else {
      to.record->store_failure(outcome);
      add_release(*to.entry, entry::fail);
    }
    if (to.prefetches_in_flight != nullptr) device_ref<u32>(*to.prefetches_in_flight).fetch_sub(1, relaxed);
  }

  /// The line fails; where the controller may still write the frame, the frame keeps one pin until it no longer can. A
  /// write-back keeps its slot, and its lines stay `writing`: a Write that comes late must not overtake a newer one.
  PENSTOCK_FN static void abandon(target const& to, status outcome, bool exposed) {
    if (to.write != nullptr) {
      to.write->note(outcome);
      if (!exposed) return to.write->end_one();
      device_ref<u32>(to.write->lost).fetch_add(1, relaxed);
      return;
    }
    if (exposed) add_relaxed(*to.entry, entry::one_pin);
    finish(to, outcome);
  }

  PENSTOCK_FN static void resolve(target const& to, bool exposed) {
    if (!exposed) return;
    if (to.write != nullptr) return to.write->end_one();
    add_release(*to.entry, 0 - entry::one_pin);
  }
};
static_assert(completion_sink<line_sink>);

}  // namespace penstock
