#include "libs/graph/parallel.hpp"

#include <sched.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::graph {

void progress_meter::phase(u64 from, u64 to) {
  from_ = from;
  to_ = to;
}

void progress_meter::report(u64 done, u64 of) {
  if (!fn_) return;
  auto const now = std::chrono::steady_clock::now();
  bool const end = done == of && to_ == 1000;
  if (!end && now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  double const part = of == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(of);
  fn_(from_ + static_cast<u64>(static_cast<double>(to_ - from_) * part), 1000);
}

unsigned worker_count(unsigned asked) {
  if (asked != 0) return std::min(asked, 1024u);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

namespace {

/// The shared state of one parallel_for.
struct job {
  u64 count;
  std::function<void(u64, unsigned)> const& body;
  std::atomic<u64> next{0};
  std::atomic<u64> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex{};
  std::exception_ptr error{};

  template <class After>
  void work(unsigned worker, After const& after) {
    try {
      while (!stop.load(std::memory_order_relaxed)) {
        u64 const i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        body(i, worker);
        after(done.fetch_add(1, std::memory_order_relaxed) + 1);
      }
    } catch (...) {
      std::lock_guard const lock(mutex);
      if (!error) error = std::current_exception();
      stop.store(true, std::memory_order_relaxed);
    }
  }
};

}  // namespace

void parallel_for(u64 count, unsigned threads, progress_meter& meter, std::function<void(u64)> const& body) {
  parallel_for_workers(count, threads, meter, [&](u64 i, unsigned) { body(i); });
}

void parallel_for_workers(u64 count, unsigned threads, progress_meter& meter, std::function<void(u64, unsigned)> const& body) {
  job shared{.count = count, .body = body};
  {
    std::vector<std::jthread> helpers;
    for (unsigned t = 1; t < std::min<u64>(threads, count); ++t)
      helpers.emplace_back([&shared, t] { shared.work(t, [](u64) {}); });
    shared.work(0, [&](u64 done) { meter.report(done, count); });
  }
  if (shared.error) std::rethrow_exception(shared.error);
  meter.report(count, count);
}

}  // namespace penstock::graph
