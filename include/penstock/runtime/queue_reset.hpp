// Resets of the queue pairs that a cache or a block device owns, on whatever executor they are.
#pragma once

#include "penstock/cache/line_sink.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/queue/result_sink.hpp"
#include "penstock/runtime/queue_pair.hpp"

#include <memory>
#include <vector>

namespace penstock {

enum class recover_scope : u32 {
  broken,  ///< queues whose controller was given up, or that hold something in quarantine
  all,     ///< for a controller that is known to have died, before the deadlines show it
};

/// What a recovery did.
struct recovery {
  u32 queues = 0;    ///< that were reset
  u64 commands = 0;  ///< that were answered with failure::resetting
  u64 aborted = 0;   ///< commands that had been given up and were ended by an Abort, or by themselves, before any reset
};

/// Takes a step of a reset where an executor's kernels run: in this thread, or as a launch on the executor's stream.
class step_runner {
 public:
  explicit step_runner(executor& on) : on_(on) {}
  void operator()(reset_body<line_sink> const& step) const;
  void operator()(reset_body<result_sink> const& step) const;

 private:
  executor& on_;
};

/// REQUIRES: as queue_pair::reset, for each of them; one recovery at a time.
template <completion_sink Sink>
recovery recover_queues(executor& on, std::vector<std::unique_ptr<queue_pair<Sink>>> const& queues, recover_scope which) {
  const step_runner run(on);
  recovery done;
  for (auto const& queue : queues) {
    if (which == recover_scope::broken && !queue->broken(run)) continue;
    const queue_recovery one =
        which == recover_scope::broken ? queue->recover(run) : queue_recovery{.reset = true, .answered = queue->reset(run)};
    done.queues += one.reset ? 1 : 0;
    done.commands += one.answered;
    done.aborted += one.aborted;
  }
  return done;
}

}  // namespace penstock
