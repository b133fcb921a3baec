// Starts the threads of one test run together and brings the first failure of any of them back to the caller.
#pragma once

#include "penstock/core/config.hpp"

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace penstock::test {

/// What an emulated group throws at a misuse, in the one lane that reports it.
struct emulation_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the other lanes throw once something has failed: it only unwinds them and is never reported.
struct lane_aborted {};

/// The first failure of a run. Nothing but a failure makes threads synchronize here: looking is relaxed.
class failure_latch {
 public:
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  /// True if it is the first.
  bool fail(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    const bool first = !first_;
    if (first) first_ = error;
    failed_.store(true, std::memory_order_relaxed);
    return first;
  }

  /// Prints at once, because an exception that leaves a destructor ends the process before anyone can report it.
  [[noreturn]] void fail_and_throw(std::string const& message) {
    if (fail(std::make_exception_ptr(emulation_error(message)))) {
      std::fprintf(stderr, "emulated group: %s\n", message.c_str());
    }
    throw lane_aborted();
  }

  /// REQUIRES: no thread of the run is left.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr first_;
};

/// Calls body(i) in thread i of n and waits for all of them. No body starts before every thread runs, and the start orders no
/// memory between them. Rethrows the first failure.
template <class Body>
void run_threads(u32 n, failure_latch& failure, Body const& body) {
  std::atomic<u32> started{0};
  auto thread_main = [&](u32 i) {
    started.fetch_add(1, std::memory_order_relaxed);
    while (started.load(std::memory_order_relaxed) < n && !failure.failed()) std::this_thread::yield();
    try {
      body(i);
    } catch (lane_aborted const&) {
    } catch (...) {
      failure.fail(std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (u32 i = 0; i < n; ++i) threads.emplace_back(thread_main, i);
    } catch (...) {
      failure.fail(std::current_exception());  // too few threads: those that wait for the start must go on
    }
  }
  failure.rethrow();
}

template <class Body>
void run_threads(u32 n, Body const& body) {
  failure_latch failure;
  run_threads(n, failure, body);
}

}  // namespace penstock::test
