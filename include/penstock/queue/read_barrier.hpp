// A read barrier (BaM, section 4.4): where a device writes data and completions to a GPU's memory, the GPU's threads may see a
// completion before the data that came before it, unless a PCIe read of that memory stands between. The device reads it when it
// fetches a command: so when a second command, that was submitted after the first one's completion was seen, has completed, the
// first one's data are there. One such command serves all that wait meanwhile.
//
// Barriers have numbers. A thread that has seen its completion needs one that begins after that: it adds nothing to `begun`,
// which puts it in the order of the additions, and any barrier that adds to it later has its completion before its own
// submission. The holder of the lock begins one; the others look at `passed`, and move the queues meanwhile.
#pragma once

#include "penstock/core/backoff.hpp"
#include "penstock/queue/result_sink.hpp"

namespace penstock {

/// In local memory; shared by all threads that read through one block device.
struct read_barrier {
  static constexpr u32 left = 2;

  alignas(128) u64 begun = 0;  ///< barriers; added to with acq_rel; a thread that needs one adds 0
  u64 passed = 0;              ///< the last that is over; stored with release under the lock
  u32 lock = 0;                ///< `left`: its holder went without a result (try_lock)
  u32 result = 0;              ///< of the command; see result_sink
  u32 slot = 0;
  alignas(128) nvme::submission_entry command{};  ///< a Read of one block
  u64 address = 0;                                ///< of the memory that it writes: never read
  u64 prp_list = 0;
  u32 bytes = 0;
};

namespace barrier_io {

/// For one lane. A command without any result may still get one, at the latest when its queue is reset: until then its word has
/// no other use. Whether it has come is looked at once more under the lock, for others may have had that meanwhile.
PENSTOCK_FN inline bool try_lock(read_barrier& barrier) {
  const device_ref<u32> lock(barrier.lock), result(barrier.result);
  u32 seen = 0;
  if (lock.compare_exchange_strong(seen, 1, acquire, relaxed)) return true;
  if (seen != read_barrier::left || result.load(relaxed) == 0) return false;
  if (!lock.compare_exchange_strong(seen, 1, acquire, relaxed)) return false;
  if (result.load(acquire) != 0) return true;
  lock.store(read_barrier::left, release);
  return false;
}

/// The queue whose turn it is, or the next one whose controller has not been given up. Collective.
template <thread_group G>
PENSTOCK_FN queue_pair_view<result_sink> const& choose(G const& g, queue_pair_view<result_sink> const* queues, u32 queues_count,
                                                       u64 turn) {
  u32 chosen = static_cast<u32>(turn % queues_count);
  if (is_leader(g)) {
    for (u32 k = 0; k < queues_count && !queues[chosen].failure_status().ok(); ++k) chosen = (chosen + 1) % queues_count;
  }
  return queues[from_leader(g, chosen)];
}

/// Runs the barrier's command; the group holds the lock. Collective.
template <thread_group G>
PENSTOCK_FN status run(G const& g, queue_pair_view<result_sink> const& queue, read_barrier& barrier) {
  const bool mine = is_leader(g);
  transfer t;
  t.command = barrier.command;
  t.address = barrier.address;
  t.prp_list = barrier.prp_list;
  t.bytes = barrier.bytes;
  if (mine) device_ref<u32>(barrier.result).store(0, relaxed);
  const result_sink::target to{&barrier.result, &barrier.slot};
  status outcome = queue.submit(g, mine, t, to);
  const bool sent = from_leader(g, mine && outcome.ok()) != 0;
  if (sent) outcome = wait_for(g, queue, mine, to);
  if (mine && !sent) result_sink::finish(to, outcome);  // which nobody else does
  // Whatever a completion says: the device has fetched the command.
  if (outcome.domain == status_domain::nvme) outcome = {};
  return unpack_status(static_cast<u32>(from_leader(g, mine ? pack(outcome) : 0)));
}

}  // namespace barrier_io

/// Returns when a read by the device has come between the completions that the lanes with `came` have seen and now; at once if
/// no lane has. Collective; one status for all: why the barrier's command failed, or failure::deadline.
template <thread_group G>
PENSTOCK_COLD status pass_barrier(G g, queue_pair_view<result_sink> const* queues, u32 queues_count, read_barrier& barrier,
                                  bool came) {
  if (!any(g.ballot(came))) return {};
  g.sync();  // what the lanes have acquired goes with the leader's addition
  u64 needed = 0;
  if (is_leader(g)) needed = device_ref<u64>(barrier.begun).fetch_add(0, acq_rel) + 1;
  needed = from_leader(g, needed);
  // Groups that come by together take different queues for it, as for all else.
  queue_pair_view<result_sink> const& queue = barrier_io::choose(g, queues, queues_count, needed);
  // Two barriers: the one that runs, and the next; each with all of its command's time.
  backoff wait(4 * queue.timeout_ns);
  for (bool in_time = true, last_look = false;;) {
    if (from_leader(g, is_leader(g) && device_ref<u64>(barrier.passed).load(acquire) >= needed) != 0) {
      g.sync();  // the leader's acquire is every member's
      return {};
    }
    if (last_look) return make_status(failure::deadline);
    const bool got = is_leader(g) && barrier_io::try_lock(barrier);
    if (from_leader(g, got) != 0) {
      u64 number = 0;
      const bool over = is_leader(g) && device_ref<u64>(barrier.passed).load(relaxed) >= needed;
      if (from_leader(g, over) == 0) {
        if (is_leader(g)) number = device_ref<u64>(barrier.begun).fetch_add(1, acq_rel) + 1;
        const status outcome = barrier_io::run(g, queue, barrier);
        if (is_leader(g) && outcome.ok()) device_ref<u64>(barrier.passed).store(number, release);
        g.sync();
        if (is_leader(g)) {
          const bool ended = device_ref<u32>(barrier.result).load(relaxed) != 0;
          device_ref<u32>(barrier.lock).store(ended ? 0 : read_barrier::left, release);
        }
        return outcome;
      }
      if (is_leader(g)) device_ref<u32>(barrier.lock).store(0, release);
      continue;
    }
    for (u32 k = 0; k < queues_count; ++k) queues[k].progress(g);
    last_look = !in_time;
    if (in_time) in_time = from_leader(g, wait.pause()) != 0;
  }
}

}  // namespace penstock
