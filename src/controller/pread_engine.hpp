// System calls on a pool of threads, for kernels or containers that refuse io_uring. One pool per controller, one engine per
// queue.
#pragma once

#include "transfer.hpp"

#include "penstock/core/atomic.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::controllers {

class pread_engine;

/// Thread-safe.
class pread_pool {
 public:
  explicit pread_pool(u32 threads);
  /// Ends the threads. One that is stuck in a system call is left behind with what it needs.
  ~pread_pool();

 private:
  friend class pread_engine;

  struct job {
    transfer* work;
    pread_engine* owner;
    int file;
  };

  /// Shared with the threads, so that one that is left behind finds it intact.
  struct shared_state {
    std::mutex mutex;
    std::condition_variable work_came;
    std::vector<job> jobs;
    u64 first = 0;  ///< of `jobs`, those before it are taken
    bool stop = false;
    u32 running = 0;
  };

  static void run(std::shared_ptr<shared_state> state);
  void add(std::vector<job> const& jobs);

  std::shared_ptr<shared_state> state_;
};

class pread_engine final : public transfer_engine {
 public:
  pread_engine(std::shared_ptr<pread_pool> pool, std::vector<int> files);

  void start(transfer& work) override;
  void submit() override;
  transfer* reap() override;
  bool quiesce(u64 deadline_ns) override;

 private:
  friend class pread_pool;

  bool given_up() const { return given_up_.load(acquire); }
  /// Called by the pool's threads; the last thing that they do with the transfer and with this engine.
  void hand_back(transfer& work);

  std::shared_ptr<pread_pool> pool_;
  std::vector<int> files_;
  std::vector<pread_pool::job> started_;
  u64 in_flight_ = 0;
  std::atomic<transfer*> ended_{nullptr};  ///< a stack: pushed with release, emptied with acquire
  std::atomic<bool> given_up_{false};
};

}  // namespace penstock::controllers
