// What a completion means to the cache: the fill of a line is over, and whoever waits for its entry sees it.
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/cache/frame_record.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

struct fill_sink {
  struct target {
    u64* entry;
    frame_record* record;
    u32* prefetches_in_flight;  ///< null for a fill that somebody waits for
  };

  PENSTOCK_FN static void placed(target const& to, u16 queue, u16 slot) { to.record->store_command(queue, slot); }

  PENSTOCK_FN static void finish(target const& to, status outcome) {
    if (!outcome.ok()) to.record->store_failure(outcome);
    // Adds rather than stores: a passer-by's pin may come between. Partner: every acquire of the entry.
    device_ref<u64>(*to.entry).fetch_add(outcome.ok() ? entry::publish : entry::fail, release);
    if (to.prefetches_in_flight != nullptr) device_ref<u32>(*to.prefetches_in_flight).fetch_sub(1, relaxed);
  }

  /// The line fails; where the controller may still write the frame, the frame keeps one pin until it no longer can.
  PENSTOCK_FN static void abandon(target const& to, status outcome, bool frame_exposed) {
    if (frame_exposed) device_ref<u64>(*to.entry).fetch_add(entry::one_pin, relaxed);
    finish(to, outcome);
  }

  PENSTOCK_FN static void resolve(target const& to, bool frame_exposed) {
    if (frame_exposed) device_ref<u64>(*to.entry).fetch_sub(entry::one_pin, release);
  }
};
static_assert(completion_sink<fill_sink>);

}  // namespace penstock
