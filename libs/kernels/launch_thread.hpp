// The thread that runs a launch's blocks while its caller looks for signals.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

namespace penstock::kernels {

/// Kept from one launch to the next with its fibers' stacks. Belongs to the process's main thread.
class launch_thread {
 public:
  /// Null for another thread, and where it runs a launch already, as below a signal's handler.
  static launch_thread* free_one() {
    static launch_thread* kept = nullptr;  // never joined: it waits until the process ends
    static pid_t owner = 0;
    if (::gettid() != ::getpid()) return nullptr;
    if (owner != ::getpid()) {  // a forked process has no other thread
      kept = new launch_thread;
      owner = ::getpid();
    }
    return kept->is_running() ? nullptr : kept;
  }

  void start(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = std::move(work);
      running_ = true;
    }
    wake_.notify_one();
  }

  /// Whether the work has ended by then.
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return over_.wait_for(lock, time, [this] { return !running_; });
  }

  /// Waits for the end, and returns what the work threw.
  std::exception_ptr finish() {
    std::unique_lock lock(mutex_);
    over_.wait(lock, [this] { return !running_; });
    return std::exchange(failure_, nullptr);
  }

 private:
  launch_thread() {
    std::thread([this] { serve(); }).detach();
  }

  bool is_running() {
    const std::lock_guard lock(mutex_);
    return running_;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return running_; });
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      running_ = false;
      over_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, over_;
  std::function<void()> work_;
  std::exception_ptr failure_;
  bool running_ = false;
};

}  // namespace penstock::kernels
