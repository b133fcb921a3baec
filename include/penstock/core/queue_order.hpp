// How the queue pair keeps in order what it hands to a controller and what it takes from one: the operations of PROTOCOLS.md §3
// that carry data across.
#pragma once

#include "penstock/core/atomic.hpp"

namespace penstock {

/// From the writer of an entry and its data to the controller (the first three), and from the controller to the waiter for its
/// completion. A sink may bring other orders (`order`), for a litmus test that asks what is lost without these.
struct sound_queue_order {
  static constexpr auto published = release;   ///< 6: the slot word
  static constexpr auto rung = release;        ///< 15
  static constexpr auto doorbell = release;    ///< 16
  static constexpr auto harvesting = acquire;  ///< 19: the lock
  static constexpr auto completion = acquire;  ///< 21: the last word of a completion
  static constexpr auto taken = acquire;       ///< 27
  static constexpr auto finished = release;    ///< the result word of a raw command
  static constexpr auto result = acquire;      ///< the same, by the waiter
};

template <class Sink>
struct queue_order_of {
  using type = sound_queue_order;
};
template <class Sink>
  requires requires { typename Sink::order; }
struct queue_order_of<Sink> {
  using type = typename Sink::order;
};

}  // namespace penstock
