#include "cpu_executor.hpp"

#include "penstock/core/ordinal.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>

namespace penstock {
namespace {

constexpr u32 most_threads = 1024;

u32 usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<u32>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

// The caller of `run` is one of the threads; the others sleep between runs. A run is a generation. It is open until the caller
// finds no more pieces, and then waits for the workers that have joined it: one that is woken too late, as beside other
// processes, is not waited for.
class cpu_executor final : public executor {
 public:
  cpu_executor(u32 threads, memory_resource& memory) : memory_(memory), threads_(threads == 0 ? usable_cores() : threads) {
    if (threads_ > most_threads) {
      throw_bad_input("open", "the cpu executor",
                      std::to_string(threads_) + " threads: choose at most " + std::to_string(most_threads));
    }
    try {
      for (u32 k = 1; k < threads_; ++k) {
        workers_.emplace_back([this, k] {
          thread_ordinal() = k;
          serve();
        });
      }
    } catch (std::system_error const& refused) {
      stop();
      throw_os_error("start", std::to_string(threads_) + " CPU threads", refused.code().value(),
                     "ask for fewer threads or raise the limit of processes (ulimit -u)");
    }
  }

  ~cpu_executor() override { stop(); }

  executor_kind kind() const override { return executor_kind::cpu; }
  std::string device() const override { return std::to_string(threads_) + (threads_ == 1 ? " CPU thread" : " CPU threads"); }
  memory_resource& memory() override { return memory_; }
  u32 units() const override { return threads_; }
  void synchronize() override {}

  void run(u64 items, u64 chunk, std::function<void(u64, u64)> const& work) override {
    const std::lock_guard one_at_a_time(run_mutex_);
    {
      std::lock_guard lock(mutex_);
      work_ = &work;
      items_ = items;
      chunk_ = chunk;
      next_.store(0, std::memory_order_relaxed);
      failure_ = nullptr;
      open_ = true;
      ++generation_;
    }
    if (items > chunk) wake_.notify_all();
    const u32 own_ordinal = std::exchange(thread_ordinal(), 0);
    take_pieces();
    thread_ordinal() = own_ordinal;
    std::unique_lock lock(mutex_);
    open_ = false;
    idle_.wait(lock, [this] { return busy_ == 0; });
    work_ = nullptr;
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  void serve() {
    prctl(PR_SET_TIMERSLACK, 1000UL);  // else a sleep of 4 us takes 60
    u64 seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || (open_ && generation_ != seen); });
      if (stopping_) return;
      seen = generation_;
      ++busy_;
      lock.unlock();
      take_pieces();
      lock.lock();
      if (--busy_ == 0) idle_.notify_one();
    }
  }

  void take_pieces() {
    try {
      for (;;) {
        const u64 first = next_.fetch_add(chunk_, std::memory_order_relaxed);
        if (first >= items_) return;
        (*work_)(first, std::min(first + chunk_, items_));
      }
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_.store(items_, std::memory_order_relaxed);
    }
  }

  memory_resource& memory_;
  const u32 threads_;
  std::mutex run_mutex_;  ///< of whoever runs something, until it is done: callers may be several threads
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::function<void(u64, u64)> const* work_ = nullptr;
  u64 items_ = 0;
  u64 chunk_ = 1;
  std::atomic<u64> next_{0};
  u64 generation_ = 0;
  u32 busy_ = 0;       // workers that have joined the run
  bool open_ = false;  // whether workers may
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<executor> open_cpu_executor(memory_resource& memory, u32 threads) {
  return std::make_unique<cpu_executor>(threads, memory);
}

std::unique_ptr<executor> make_cpu_executor(u32 threads) { return open_cpu_executor(cpu_memory(), threads); }

std::unique_ptr<executor> make_cpu_executor(executor_limits const& limits) {
  return make_cpu_executor(limits.units == 0 ? 0 : std::min(limits.units, usable_cores()));
}

}  // namespace penstock
