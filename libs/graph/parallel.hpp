// Work over a range of indices by several threads, with progress and with a way out: the callback runs on the caller's thread,
// a few times a second, and may throw to stop the work (Python does so for KeyboardInterrupt).
#pragma once

#include "penstock/core/config.hpp"

#include <chrono>
#include <functional>

namespace penstock::graph {

/// Gets (done, total) with done <= total; total is the same in every call of one job.
using done_fn = std::function<void(u64 done, u64 total)>;

/// Maps the phases of one job on one scale. Only for the thread that runs the job.
class progress_meter {
 public:
  explicit progress_meter(done_fn fn = {}) : fn_(std::move(fn)) {}

  /// The next reports cover the part [from, to) of the job, in per mille.
  void phase(u64 from, u64 to);
  /// Tells that `done` of `of` steps of the phase are done; passes it on at most every 50 ms, and at once at the very end.
  void report(u64 done, u64 of);

 private:
  done_fn fn_;
  u64 from_ = 0;
  u64 to_ = 1000;
  std::chrono::steady_clock::time_point last_{};
};

/// `asked`, or when that is 0 the number of processors that this process may use.
unsigned worker_count(unsigned asked);

/// Calls body(i) once for each i < count, from up to `threads` threads, the caller being one of them. The first exception stops
/// the rest and is thrown again here, after every thread has ended.
void parallel_for(u64 count, unsigned threads, progress_meter& meter, std::function<void(u64)> const& body);

/// The same with body(i, worker), for what each thread keeps from one call to the next: no two calls with one `worker`, which
/// is below `threads`, run at the same time.
void parallel_for_workers(u64 count, unsigned threads, progress_meter& meter, std::function<void(u64, unsigned)> const& body);

}  // namespace penstock::graph
