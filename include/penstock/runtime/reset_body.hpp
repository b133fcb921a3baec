// The steps by which the host takes a queue pair back, each for one group of the executor whose memory the queue is in
// (queue_pair::reset and abort_late take them).
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

enum class reset_step : u32 { look, name_late, await_late, close, quiesce, answer, start_over, reopen, unlock, fail };

/// What a step reports to the host; in local memory.
struct reset_report {
  u64 good = 0;
  u64 answered = 0;  ///< commands, by this reset so far
  u32 late = 0;      ///< commands that are to be aborted, or that have ended
  static constexpr u32 most_ids = 64;
  u16 ids[most_ids] = {};  ///< of those
};

/// One step of a reset, for one group of the executor whose memory the queue is in.
template <completion_sink Sink>
struct reset_body {
  queue_pair_view<Sink> queue;
  reset_step step;
  u64 timeout_ns;
  reset_report* report;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g) const {
    const u64 answered = device_ref<u64>(queue.state->reset).load(relaxed);
    const bool good = take(g);
    g.sync();
    if (!is_leader(g)) return;
    report->good = good;
    report->answered += device_ref<u64>(queue.state->reset).load(relaxed) - answered;
  }

 private:
  template <thread_group G>
  PENSTOCK_FN bool note_late(G const& g, u32 late) const {
    if (is_leader(g)) report->late = late;
    return late != 0;
  }

  template <thread_group G>
  PENSTOCK_FN bool take(G const& g) const {
    switch (step) {
      case reset_step::look: return queue.is_broken(g);
      case reset_step::name_late: return note_late(g, queue.name_late(g, timeout_ns, report->ids, reset_report::most_ids));
      case reset_step::await_late: return note_late(g, queue.await_late(g, timeout_ns));
      case reset_step::close: queue.close(g); break;
      case reset_step::quiesce: return queue.quiesce(g, timeout_ns);
      case reset_step::answer: return queue.answer_all(g, timeout_ns);
      case reset_step::start_over: queue.start_over(g); break;
      case reset_step::reopen: queue.reopen(g); break;
      case reset_step::unlock: queue.unlock(g, false); break;
      case reset_step::fail: queue.unlock(g, true); break;
    }
    return true;
  }
};

/// Takes the steps of a reset in the calling thread: for memory that the CPU reaches.
struct in_this_thread {
  template <completion_sink Sink>
  void operator()(reset_body<Sink> const& step) const {
    step(lone_thread());
  }
};

}  // namespace penstock
