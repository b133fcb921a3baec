// The thread that runs a launch's blocks while its caller looks for signals.
#pragma once

#include "penstock/core/backoff.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <sched.h>
#include <unistd.h>

namespace penstock::kernels {

/// Kept from one launch to the next with its fibers' stacks. Belongs to the process's main thread. To wake a thread takes
/// longer than a small launch, so each looks for the other for a while before it sleeps, unless they have one core.
class launch_thread {
 public:
  /// Null for another thread, where it runs a launch already, as below a signal's handler, and where no thread can be made.
  static launch_thread* free_one() {
    static launch_thread* kept = nullptr;  // never joined: it waits until the process ends
    static pid_t owner = 0;
    if (::gettid() != ::getpid()) return nullptr;
    if (owner != ::getpid()) {  // a forked process has no other thread
      try {
        kept = new launch_thread;
      } catch (std::system_error const&) {
        return nullptr;
      }
      owner = ::getpid();
    }
    return kept->is_running() ? nullptr : kept;
  }

  void start(std::function<void()> work) {
    work_ = std::move(work);
    owner_cpu_.store(::sched_getcpu(), std::memory_order_relaxed);
    set_running(true);
    wake_.notify_one();
  }

  /// Whether the work has ended by then.
  bool wait_for(std::chrono::milliseconds time) {
    // On this core it runs when its owner sleeps.
    if (cpu_.load(std::memory_order_relaxed) != ::sched_getcpu() && looks_for(false, spin_for_end_ns)) return true;
    std::unique_lock lock(mutex_);
    return over_.wait_for(lock, time, [this] { return !is_running(); });
  }

  /// Waits for the end, and returns what the work threw.
  std::exception_ptr finish() {
    std::unique_lock lock(mutex_);
    over_.wait(lock, [this] { return !is_running(); });
    return std::exchange(failure_, nullptr);
  }

 private:
  static constexpr u64 spin_for_work_ns = 200 * one_microsecond_ns;
  static constexpr u64 spin_for_end_ns = 60 * one_microsecond_ns;  // of a core that the executor's threads may want

  launch_thread() {
    std::thread([this] { serve(); }).detach();
  }

  bool is_running() const { return running_.load(std::memory_order_acquire); }
  void set_running(bool running) {
    const std::lock_guard lock(mutex_);  // for who sleeps
    running_.store(running, std::memory_order_release);
  }

  /// Whether it is, or is not, running within a time.
  bool looks_for(bool running, u64 spin_ns) const {
    static const bool alone = std::thread::hardware_concurrency() == 1;
    const u64 until_ns = now_ns() + spin_ns;
    while (is_running() != running) {
      if (alone || now_ns() >= until_ns) return false;
      let_others_run(32);
    }
    return true;
  }

  void serve() {
    for (;;) {
      if (!looks_for(true, spin_for_work_ns)) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return is_running(); });
      }
      cpu_.store(::sched_getcpu(), std::memory_order_relaxed);
      try {
        work_();
      } catch (...) {
        failure_ = std::current_exception();
      }
      set_running(false);
      over_.notify_one();
      if (cpu_.load(std::memory_order_relaxed) == owner_cpu_.load(std::memory_order_relaxed)) std::this_thread::yield();
    }
  }

  std::atomic<bool> running_ = false;  ///< set by the owner, cleared by the thread; with it goes what follows
  std::function<void()> work_;
  std::exception_ptr failure_;
  std::atomic<int> cpu_ = -1, owner_cpu_ = -2;  ///< that each ran on last
  std::mutex mutex_;
  std::condition_variable wake_, over_;
};

}  // namespace penstock::kernels
