// Completions of raw commands: a result word that outlives the wait.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

/// `Order`: see queue_order.hpp.
template <class Order>
struct basic_result_sink {
  using order = Order;

  /// Bit 31 says that a result word holds a packed status.
  static constexpr u32 arrived = 1u << 31;

  struct target {
    u32* result;  ///< 0 until the command is over
    u32* slot;    ///< gets the slot of the command; null if the caller needs none
  };

  PENSTOCK_FN static void placed(target const& to, u16, u16 slot) {
    if (to.slot != nullptr) device_ref<u32>(*to.slot).store(slot, relaxed);
  }
  PENSTOCK_FN static void finish(target const& to, status outcome) {
    // Partner: the waiter, with acquire.
    if constexpr (Order::finished == release) {
      store_after_fence(*to.result, arrived | pack(outcome));
    } else {
      device_ref<u32>(*to.result).store(arrived | pack(outcome), Order::finished);
    }
  }
  PENSTOCK_FN static void abandon(target const& to, status outcome, bool) { finish(to, outcome); }
  PENSTOCK_FN static void resolve(target const&, bool) {}
};
using result_sink = basic_result_sink<sound_queue_order>;
static_assert(completion_sink<result_sink>);

/// Waits until the commands of all lanes that have one are over; moves the queue meanwhile, and copies what has landed for
/// them. Collective. This lane's status; failure::deadline if a result did not arrive in twice the queue's time, which takes a
/// harvester that does not run: the result word must outlive that, too.
template <thread_group G, class Order>
PENSTOCK_COLD status wait_for(G g, queue_pair_view<basic_result_sink<Order>> const& queue, bool mine,
                              typename basic_result_sink<Order>::target const& to) {
  backoff wait(2 * queue.timeout_ns + expiry_period_ns);
  bool in_time = true;
  for (bool last_look = false;;) {
    const auto waiting = g.ballot(mine && device_ref<u32>(*to.result).load(Order::result) == 0);
    if (!any(waiting)) break;
    if (last_look) {
      const bool late = contains(waiting, g.rank());
      return late ? make_status(failure::deadline) : unpack_status(mine ? *to.result & ~result_sink::arrived : 0);
    }
    if (queue.bounces != nullptr) {
      const u64 slot = mine && to.slot != nullptr ? device_ref<u32>(*to.slot).load(relaxed) : 0;
      queue.drain(g, static_cast<u32>(g.shfl(slot, lowest(waiting))));
    }
    queue.progress(g);
    last_look = !in_time;
    if (in_time) in_time = from_leader(g, wait.pause()) != 0;
  }
  return mine ? unpack_status(device_ref<u32>(*to.result).load(relaxed) & ~result_sink::arrived) : status{};
}

}  // namespace penstock
