// The least that a host can do over a controller's rings: it writes commands, rings a doorbell, looks at phases, and rings the
// other one. No tickets, no slots, no deadline per command, no locks: a queue belongs to one group. What comes out is the
// controller's own ceiling and its own latency, which no queue pair over it can beat.
//
// Data is looked at, and so is every status: a controller that answers without moving anything would be the fastest of all.
#pragma once

#include "libs/bench/block_word.hpp"
#include "libs/bench/timing.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/core/host_call.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/nvme/command.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock::bench {

/// Commands go out in batches, and up to so many batches are on their way at once. A batch's buffers are used again when all of
/// its commands are done, so completions may come in any order.
inline constexpr u32 most_batches_in_flight = 4;

/// One queue as its only user sees it. The host-side `bare_queues` owns what it points at.
struct bare_queue_view {
  nvme::submission_entry* sq = nullptr;
  nvme::completion_entry* cq = nullptr;
  u32* sq_doorbell = nullptr;
  u32* cq_doorbell = nullptr;
  u64* position = nullptr;             ///< commands of all runs so far: where both rings stand
  u64 data = 0;                        ///< a block for each command in flight
  u64 lists = 0;                       ///< a PRP list for each; 0: blocks are too small to need one
  void (*poll)(void*, u16) = nullptr;  ///< lets the controller work (CPU executor)
  void* poll_target = nullptr;
  u32 entries = 0;  ///< of either ring; a power of two
  u32 block_bytes = 0;
  u32 namespace_id = 0;
  u32 number = 0;  ///< among the queues of a run
  u16 id = 0;

  PENSTOCK_FN u32 block_words() const { return block_bytes / 8; }
  PENSTOCK_FN u64* block_of(u32 command) const { return reinterpret_cast<u64*>(data + u64{command} * block_bytes); }
};

struct bare_data {
  bare_queue_view const* queues = nullptr;
  u32 batch = 32;                          ///< commands that one doorbell tells of; a power of two
  u32 in_flight = most_batches_in_flight;  ///< batches of a queue at once; a power of two
  u64 batches = 0;                         ///< of each queue
  u64 blocks = 0;                          ///< of the drive that are used; a power of two
  u64 first = 0;                           ///< so that no two runs ask in the same order
  bool writes = false;
  bool whole = false;                   ///< look at every word, not at the first of each block
  u32 looks_per_pause = 1;              ///< at the completion ring, while nothing comes
  u64 timeout_ns = 10 * one_second_ns;  ///< without a completion
  u64* wrong = nullptr;                 ///< commands that failed, brought wrong bytes or never came back
};

/// Waits between looks at a completion ring.
class bare_patience {
 public:
  PENSTOCK_FN bare_patience(bare_queue_view const& q, bare_data const& data) : queue_(q), data_(data), wait_(data.timeout_ns) {}

  /// Something has come.
  PENSTOCK_FN void restart() { wait_ = backoff(data_.timeout_ns); }

  /// False once it is time to give up. One member calls it.
  PENSTOCK_FN bool pause() {
    call_on_host(queue_.poll, queue_.poll_target, queue_.id);
    return ++looks_ % data_.looks_per_pause != 0 || wait_.pause();
  }

 private:
  bare_queue_view const& queue_;
  bare_data const& data_;
  backoff wait_;
  u32 looks_ = 0;
};

namespace bare {

PENSTOCK_FN inline void write_command(bare_queue_view const& q, bool writes, u64 position, u32 id, u64 block) {
  const u64 data = q.data + u64{id} * q.block_bytes;
  nvme::submission_entry command =
      nvme::transfer_command(writes ? nvme::opcode::write : nvme::opcode::read, q.namespace_id, lba{block}, 1);
  command.command_id = static_cast<u16>(id);
  nvme::set_data_pointer(command, data, q.block_bytes, q.lists + u64{id} * prp_list_stride);
  q.sq[position & (q.entries - 1)] = command;
}

PENSTOCK_FN inline void ring(bare_queue_view const& q, u32* doorbell, u64 position) {
  system_ref<u32>(*doorbell).store(static_cast<u32>(position & (q.entries - 1)), release);
}

/// The completion at a position, once it is there.
PENSTOCK_FN inline bool completed(bare_queue_view const& q, u64 position, u32& outcome) {
  outcome = system_ref<u32>(q.cq[position & (q.entries - 1)].outcome).load(acquire);
  return nvme::phase_tag(outcome) == (~(position / q.entries) & 1);
}

PENSTOCK_FN inline u64 wrong_words(bare_queue_view const& q, u32 id, u64 block, bool whole) {
  const u32 look = whole ? q.block_words() : 1;
  u64 wrong = 0;
  for (u32 w = 0; w < look; ++w) wrong += load_piece(q.block_of(id) + w) != block_word(0, block, w, q.block_words()) ? 1 : 0;
  return wrong != 0 ? 1 : 0;
}

PENSTOCK_FN inline void fill(bare_queue_view const& q, u32 id, u64 block, bool whole) {
  const u32 words = whole ? q.block_words() : 1;
  for (u32 w = 0; w < words; ++w) q.block_of(id)[w] = block_word(0, block, w, q.block_words());
}

}  // namespace bare

/// As many commands as a queue takes. A group per item, which is a queue.
struct drive_queues {
  bare_data data;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    u64 wrong = 0;
    for (u64 item = range.first; item < range.last; item += range.step) wrong += drive(g, data.queues[item]);
    if (wrong != 0) device_ref<u64>(*data.wrong).fetch_add(wrong, relaxed);
  }

 private:
  /// What one batch in flight still waits for, 16 bits each.
  static constexpr u32 field_bits = 64 / most_batches_in_flight;

  PENSTOCK_FN u64 block_at(bare_queue_view const& q, u64 batch, u32 k) const {
    const u64 command = (data.first + q.number * data.batches + batch) * data.batch + k;
    return permute(command, data.blocks);
  }

  /// This member's wrong commands. Collective.
  template <thread_group G>
  PENSTOCK_FN u64 drive(G const& g, bare_queue_view const& q) const {
    const u64 start = *q.position;
    const u64 commands = data.batches * data.batch;
    u64 done = 0, sent = 0, left = 0, wrong = 0;
    bare_patience patience(q, data);
    while (done < commands) {
      bool moved = false;
      const u32 field = static_cast<u32>(sent % data.in_flight) * field_bits;
      if (sent < data.batches && (left >> field & 0xffff) == 0) {
        send(g, q, start, sent++);
        left += u64{data.batch} << field;
        moved = true;
      }
      const u32 batch = harvest(g, q, start + done, sent, left, wrong);
      done += batch;
      if (batch != 0) patience.restart();
      if (moved || batch != 0) continue;
      const bool in_time = !is_leader(g) || patience.pause();
      if (from_leader(g, in_time) == 0) return is_leader(g) ? wrong + commands - done : wrong;
    }
    if (is_leader(g)) *q.position = start + commands;
    return wrong;
  }

  template <thread_group G>
  PENSTOCK_FN void send(G const& g, bare_queue_view const& q, u64 start, u64 batch) const {
    const u32 base = static_cast<u32>(batch % data.in_flight) * data.batch;
    const u64 first = start + batch * data.batch;
    for (u32 k = index_in(g); k < data.batch; k += size(g)) {
      const u64 block = block_at(q, batch, k);
      if (data.writes) bare::fill(q, base + k, block, data.whole);
      bare::write_command(q, data.writes, first + k, base + k, block);
    }
    g.sync();
    if (is_leader(g)) bare::ring(q, q.sq_doorbell, first + data.batch);
  }

  /// Takes what has come, at most one completion per member. How many.
  template <thread_group G>
  PENSTOCK_FN u32 harvest(G const& g, bare_queue_view const& q, u64 position, u64 sent, u64& left, u64& wrong) const {
    u32 outcome = 0;
    const u32 at = index_in(g);
    // A member beyond the ring would look at an entry that another one has, one lap on.
    const bool fresh = bare::completed(q, position + at, outcome) && at < q.entries;
    const u32 batch = leading(g.members(), g.ballot(fresh));
    if (batch == 0) return 0;
    const bool mine = at < batch;
    const u32 id = nvme::command_id(outcome);
    const u32 slot = id / data.batch % data.in_flight;
    if (mine) {
      // The newest batch that was sent from this slot.
      const u64 number = sent - 1 - (sent - 1 - slot) % data.in_flight;
      const bool good = nvme::completion_status(outcome).ok() && id < data.in_flight * data.batch;
      if (!good) {
        ++wrong;
      } else if (!data.writes) {
        wrong += bare::wrong_words(q, id, block_at(q, number, id % data.batch), data.whole);
      }
    }
    for (u32 s = 0; s < data.in_flight; ++s) {
      left -= static_cast<u64>(count(g.ballot(mine && slot == s))) << s * field_bits;
    }
    g.sync();
    if (is_leader(g)) bare::ring(q, q.cq_doorbell, position + batch);
    return batch;
  }
};

/// One command at a time on one queue, timed from the first word of the command to its phase. One group.
struct time_commands {
  bare_data data;
  timed_run times;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    bare_queue_view const& q = data.queues[0];
    const u64 start = *q.position;
    const run_clock run;
    u64 wrong = 0, sum_ns = 0;
    for (u64 k = 0; k < times.samples; ++k) {
      const u64 block = permute(data.first + k, data.blocks);
      const u32 words = q.block_words();
      for (u32 w = index_in(g); data.writes && w < words; w += size(g)) q.block_of(0)[w] = block_word(0, block, w, words);
      g.sync();  // it is written, and all have looked at the one before
      u64 answered = 0;
      if (is_leader(g)) answered = one_command(q, start + k, block, times.cycles[k], sum_ns);
      if (from_leader(g, answered) == 0) {
        wrong += times.samples - k;
        break;
      }
      g.sync();
      for (u32 w = index_in(g); !data.writes && w < words; w += size(g)) {
        wrong += load_piece(q.block_of(0) + w) != block_word(0, block, w, words) ? 1 : 0;
      }
    }
    if (is_leader(g)) {
      run.write(times, sum_ns);
      *q.position = start + times.samples;
    }
    if (wrong != 0) device_ref<u64>(*data.wrong).fetch_add(wrong, relaxed);
  }

 private:
  /// One member's work. Whether the command was answered well.
  PENSTOCK_FN bool one_command(bare_queue_view const& q, u64 position, u64 block, u64& cycles, u64& sum_ns) const {
    bare_patience patience(q, data);
    const u64 begin_ns = now_ns();
    const u64 begin = now_cycles();
    bare::write_command(q, data.writes, position, 0, block);
    bare::ring(q, q.sq_doorbell, position + 1);
    u32 outcome = 0;
    while (!bare::completed(q, position, outcome)) {
      if (!patience.pause()) return false;
    }
    cycles = now_cycles() - begin;
    sum_ns += now_ns() - begin_ns;
    bare::ring(q, q.cq_doorbell, position + 1);
    return nvme::completion_status(outcome).ok();
  }
};

// One per executor, in the translation unit that can compile it.
kernel_facts drive_queues_cpu(executor& on, u64 queues, u32 units, drive_queues const& body);
kernel_facts drive_queues_cuda(executor& on, u64 queues, u32 units, drive_queues const& body);
kernel_facts time_commands_cpu(executor& on, time_commands const& body);
kernel_facts time_commands_cuda(executor& on, time_commands const& body);
/// Loads both kernels: before a resident one starts.
void prepare_bare_cuda(executor& on, drive_queues const& rate, time_commands const& latency);

}  // namespace penstock::bench
