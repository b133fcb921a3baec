// What stands behind the aliases, the clock and the back-off in a program that decides itself which thread goes on: a test's
// scheduler (tests/support/scheduler.hpp), called before each atomic operation and in each wait. Only where PENSTOCK_SCHEDULED
// is defined, which such a test does before it includes anything; everywhere else nothing of this is compiled.
#pragma once

#include "penstock/core/config.hpp"

#include <atomic>

namespace penstock::scheduled {

/// Another thread may go on here. Outside of a scheduled run all three do what they must, and no more.
void yield_point();
/// This thread waits for others, which go first.
void pause();
/// Time that goes on by what is done, so that a deadline passes at the same step of every run.
u64 now_ns();

/// As std::atomic_ref, with a yield point before each operation; and after each that may publish something to others, for what
/// its thread then does with plain loads and stores. Sequentially consistent in effect, whatever order is named: one thread
/// runs at a time.
template <class T>
class atomic_ref {
 public:
  explicit atomic_ref(T& object) : ref_(object) {}

  T load(std::memory_order order) const {
    yield_point();
    return ref_.load(order);
  }
  void store(T v, std::memory_order order) const {
    yield_point();
    ref_.store(v, order);
    yield_point();
  }
  T exchange(T v, std::memory_order order) const {
    return change([&] { return ref_.exchange(v, order); });
  }
  T fetch_add(T v, std::memory_order order) const {
    return change([&] { return ref_.fetch_add(v, order); });
  }
  T fetch_sub(T v, std::memory_order order) const {
    return change([&] { return ref_.fetch_sub(v, order); });
  }
  T fetch_or(T v, std::memory_order order) const {
    return change([&] { return ref_.fetch_or(v, order); });
  }
  T fetch_and(T v, std::memory_order order) const {
    return change([&] { return ref_.fetch_and(v, order); });
  }
  bool compare_exchange_strong(T& expected, T v, std::memory_order done, std::memory_order not_done) const {
    return change([&] { return ref_.compare_exchange_strong(expected, v, done, not_done); });
  }
  // Strong: one that failed for no reason would make two runs of one seed differ.
  bool compare_exchange_weak(T& expected, T v, std::memory_order done, std::memory_order not_done) const {
    return compare_exchange_strong(expected, v, done, not_done);
  }
  bool compare_exchange_weak(T& expected, T v, std::memory_order done) const {
    return change([&] { return ref_.compare_exchange_strong(expected, v, done); });
  }

 private:
  template <class Change>
  static auto change(Change const& make) {
    yield_point();
    const auto before = make();
    yield_point();
    return before;
  }

  std::atomic_ref<T> ref_;
};

}  // namespace penstock::scheduled
