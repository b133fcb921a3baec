// Which queues a controller serves, and who serves them: threads of its own, or whoever polls. The same for every controller.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/config.hpp"

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::controllers {

/// One attached queue. Whoever serves it holds its turn; turns are tried, never waited for (but by detach, with a deadline).
class served_queue {
 public:
  virtual ~served_queue() = default;

  /// Fetches, moves data, completes; never blocks. True if anything moved. REQUIRES: the caller holds the turn.
  virtual bool serve() = 0;

  /// Gives up what is in flight and waits until nothing writes to the queue's memory any more. False if that did not come true
  /// before the deadline. Nothing is called afterwards but the destructor. REQUIRES: the caller holds the turn.
  virtual bool quiesce(u64 deadline_ns) = 0;

  /// Ends a command with code::abort_requested where that can be done at once. REQUIRES: the caller holds the turn.
  virtual bool abort(u16 /*command_id*/) { return false; }

  bool try_take_turn() { return !taken_.load(relaxed) && !taken_.exchange(true, acquire); }
  void give_turn() { taken_.store(false, release); }

 private:
  std::atomic<bool> taken_{false};
};

/// Thread-safe as `controller` says.
class queue_table {
 public:
  /// `threads` 0: queues are served inside poll().
  queue_table(u32 most_queues, u32 threads);
  ~queue_table();

  /// Throws bad_input where the identifier is in use. REQUIRES: id <= most_queues.
  void attach(u16 id, std::shared_ptr<served_queue> const& queue);

  /// Throws bad_input where no such queue is attached, and world (ETIMEDOUT) where a system call does not come back.
  void detach(u16 id);

  void poll(u16 id) {
    if (!workers_.empty() || id >= slots_.size()) return;
    served_queue* queue = slots_[id].polled.load(acquire);
    if (queue == nullptr || !queue->try_take_turn()) return;
    queue->serve();
    queue->give_turn();
  }

  /// False where no such queue is attached, or it cannot.
  bool abort(u16 id, u16 command_id, u64 patience_ns);

  bool has_threads() const { return !workers_.empty(); }
  bool in_use(u16 id);

  /// Detaches all and ends the threads. What does not come back in time is leaked, with the memory that it may still touch.
  void close() noexcept;

 private:
  struct slot {
    std::atomic<served_queue*> polled{nullptr};
    std::shared_ptr<served_queue> queue;
  };

  struct worker {
    std::mutex mutex;
    std::vector<std::shared_ptr<served_queue>> queues;
    std::atomic<u64> version{0};  ///< of `queues`; grows under the mutex
    std::thread thread;
  };

  void run(worker& self);
  void hand_over(u16 id, std::shared_ptr<served_queue> const& queue);
  void take_back(u16 id, std::shared_ptr<served_queue> const& queue);

  std::mutex mutex_;  ///< guards the shared_ptrs of the slots
  std::vector<slot> slots_;
  std::vector<std::unique_ptr<worker>> workers_;
  std::atomic<bool> stop_{false};
};

}  // namespace penstock::controllers
