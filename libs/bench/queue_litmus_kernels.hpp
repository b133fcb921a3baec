// Kernel of `penstock bench litmus --test queue`: message passing through queue pairs. Some groups submit commands and wait for
// them, as a program does; the others are the controllers of the queues, in the same launch.
//
// A command names two places. In one lies what its thread wrote right before it submitted; the controller looks whether it is
// of that round. To the other the controller writes, right before it posts the completion; the thread looks at it when it has
// waited. All of it by plain loads and stores, which may find an old line in a GPU's L1: what makes them right is the order of
// the queue alone. Words of neighbouring groups share lines, so such lines are there to be found.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/queue/result_sink.hpp"

namespace penstock::bench {

inline constexpr u32 message_words = 4;  ///< each way
/// A command that moves data both ways (base specification, "Opcode": bits 1:0), of a vendor.
inline constexpr u8 message_opcode = 0x83;
inline constexpr u64 message_timeout_ns = 3 * one_second_ns;        ///< of a command
inline constexpr u64 silence_timeout_ns = 10 * message_timeout_ns;  ///< of a controller that sees no command

/// The controller's half of the orders; see served_ring.hpp, which has it for the modelled drives.
struct sound_far_order {
  static constexpr auto tail = acquire;    ///< of the submission doorbell
  static constexpr auto posted = release;  ///< of the last word of a completion
};

// The queue pair's half of one direction less, and then the controller's half, too.
struct relaxed_submission : sound_queue_order {
  static constexpr auto published = relaxed, rung = relaxed, doorbell = relaxed;
};
struct relaxed_completion : sound_queue_order {
  static constexpr auto harvesting = relaxed, completion = relaxed, taken = relaxed, finished = relaxed, result = relaxed;
};
struct relaxed_tail : sound_far_order {
  static constexpr auto tail = relaxed;
};
struct relaxed_posting : sound_far_order {
  static constexpr auto posted = relaxed;
};

/// What groups add to at their ends.
struct message_counts {
  u64 commands = 0;        ///< that controllers took
  u64 wrong_commands = 0;  ///< with an entry or data of another round
  u64 answers = 0;         ///< that submitters have waited for
  u64 wrong_answers = 0;   ///< with data of another round
  u64 unanswered = 0;      ///< commands that failed or were not answered in time
};

/// Where a controller stands, from one launch to the next.
struct far_position {
  u64 served = 0;  ///< commands, and completions posted
  u64 read = 0;    ///< completions that the host has given back
};

template <class Order>
struct message_data {
  queue_pair_view<basic_result_sink<Order>> const* queues = nullptr;
  queue_rings const* rings = nullptr;  ///< of the same queues: their far side
  far_position* positions = nullptr;   ///< likewise
  u32* left = nullptr;                 ///< likewise: groups that have done all their rounds, of all launches
  u32 queues_count = 0;
  u32 sharers = 1;          ///< groups that submit to one queue
  u32 runs = 0;             ///< this launch and those before
  u32 looks_per_pause = 1;  ///< at a doorbell that does not move
  u64 threads = 0;          ///< that submit
  u64 before = 0;           ///< rounds that each has had
  u64 rounds = 0;
  u64 spoiled = 0;               ///< of these, the first: nobody writes data
  u64* to_controller = nullptr;  ///< [message_words][threads]
  u64* to_submitter = nullptr;   ///< likewise
  u64* seen = nullptr;           ///< [threads]: the newest round of which the controller has had the command
  u32* results = nullptr;        ///< [threads]: see basic_result_sink
  message_counts* counts = nullptr;

  PENSTOCK_FN u32 submitters() const { return queues_count * sharers; }
  /// What word `w` of a round's message is; the ones to the submitter count on from message_words.
  PENSTOCK_FN static u64 stamp(u64 round, u64 thread, u32 w) {
    return round * 0x9e3779b97f4a7c15u + thread * 2 * message_words + w;
  }
  PENSTOCK_FN bool is_spoiled(u64 round) const { return round <= before + spoiled; }
};

/// The first items are the controllers, the others the submitters: one group for each, and all of them at once.
template <class Order, class FarOrder>
struct pass_messages {
  message_data<Order> data;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u32 n = static_cast<u32>(item);
      n < data.queues_count ? serve(g, n) : submit_rounds(g, n - data.queues_count);
    }
  }

 private:
  using sink = basic_result_sink<Order>;

  // The near side.

  template <thread_group G>
  PENSTOCK_FN void submit_rounds(G const& g, u32 submitter) const {
    const u32 q = submitter % data.queues_count;  // those who share a queue are on different SMs
    queue_pair_view<sink> const& queue = data.queues[q];
    const u64 thread = u64{index_in(g)} * data.submitters() + submitter;
    const typename sink::target to{data.results + thread, nullptr};
    u64 wrong = 0, answers = 0, unanswered = 0;
    for (u64 round = data.before + 1; round <= data.before + data.rounds; ++round) {
      if (!data.is_spoiled(round)) write_message(data.to_controller, round, thread, 0);
      *to.result = 0;
      status outcome = queue.submit(g, true, command_of(round, thread), to);
      const status waited = wait_for(g, queue, outcome.ok(), to);
      if (outcome.ok()) outcome = waited;
      if (outcome.ok()) {
        ++answers;
        if (!is_message(data.to_submitter, round, thread, message_words)) ++wrong;
      } else {
        unanswered = data.before + data.rounds + 1 - round;
      }
      if (any(g.ballot(!outcome.ok()))) break;  // each that fails takes its whole time
    }
    g.sync();
    if (is_leader(g)) device_ref<u32>(data.left[q]).fetch_add(1, release);
    device_ref<u64>(data.counts->answers).fetch_add(answers, relaxed);
    device_ref<u64>(data.counts->wrong_answers).fetch_add(wrong, relaxed);
    device_ref<u64>(data.counts->unanswered).fetch_add(unanswered, relaxed);
  }

  /// The round stands in each 16 bytes that may travel alone.
  PENSTOCK_FN transfer command_of(u64 round, u64 thread) const {
    transfer t;
    t.command.opcode = message_opcode;
    t.command.namespace_id = static_cast<u32>(round);
    t.command.metadata = round;
    t.command.prp1 = reinterpret_cast<u64>(data.to_controller + thread);
    t.command.prp2 = reinterpret_cast<u64>(data.to_submitter + thread);
    t.command.dword10 = static_cast<u32>(round);
    t.command.dword14 = static_cast<u32>(round);
    t.command.dword15 = static_cast<u32>(round >> 32);
    return t;
  }

  PENSTOCK_FN void write_message(u64* words, u64 round, u64 thread, u32 first) const {
    for (u32 w = 0; w < message_words; ++w) words[w * data.threads + thread] = data.stamp(round, thread, first + w);
  }

  PENSTOCK_FN bool is_message(u64 const* words, u64 round, u64 thread, u32 first) const {
    bool right = true;
    for (u32 w = 0; w < message_words; ++w) right &= words[w * data.threads + thread] == data.stamp(round, thread, first + w);
    return right;
  }

  // The far side: the steps of served_ring.hpp for one group, whose queue nobody else serves.

  template <thread_group G>
  PENSTOCK_FN void serve(G const& g, u32 q) const {
    queue_rings const& rings = data.rings[q];
    far_position at = data.positions[q];
    const u64 before = at.served;
    u64 wrong = 0;
    backoff patience(silence_timeout_ns);
    for (u32 looks = 1;; ++looks) {
      u32 batch = 0;
      if (is_leader(g)) batch = commands_there(rings, at, size(g));
      batch = static_cast<u32>(from_leader(g, batch));
      if (batch == 0) {
        bool stay = true;
        if (is_leader(g)) stay = !all_left(q) && (looks % data.looks_per_pause != 0 || patience.pause());
        if (from_leader(g, stay) == 0) break;
        continue;
      }
      patience = backoff(silence_timeout_ns);
      g.sync();  // the leader's acquire of the doorbell is everyone's
      const bool mine = index_in(g) < batch;
      const u64 position = at.served + index_in(g);
      if (mine && !take(rings, q, position)) ++wrong;
      g.sync();  // all have read before a head says so
      if (mine) post(rings, position, at.served + batch);
      at.served += batch;
    }
    if (is_leader(g)) {
      data.positions[q] = at;
      device_ref<u64>(data.counts->commands).fetch_add(at.served - before, relaxed);
    }
    device_ref<u64>(data.counts->wrong_commands).fetch_add(wrong, relaxed);
  }

  PENSTOCK_FN bool all_left(u32 q) const { return device_ref<u32>(data.left[q]).load(relaxed) == data.runs * data.sharers; }

  /// At most `most`, and no more than there is room for on the completion ring. Leader.
  PENSTOCK_FN static u32 commands_there(queue_rings const& rings, far_position& at, u32 most) {
    const u32 tail = system_ref<u32>(*rings.sq_doorbell).load(FarOrder::tail);
    u32 n = (tail - static_cast<u32>(at.served)) & (rings.sq_entries - 1);
    if (n > most) n = most;
    if (n == 0 || at.served + n - at.read < rings.cq_entries) return n;
    const u32 head = system_ref<u32>(*rings.cq_doorbell).load(acquire);
    at.read += (head - static_cast<u32>(at.read)) & (rings.cq_entries - 1);
    const auto room = static_cast<u32>(rings.cq_entries - 1 - (at.served - at.read));
    return n < room ? n : room;
  }

  /// Looks at the command at a position, and writes its answer. False if it, or its data, are of another round than its
  /// thread's next.
  PENSTOCK_FN bool take(queue_rings const& rings, u32 q, u64 position) const {
    nvme::submission_entry const& entry = rings.sq[slot_of(rings, position)];
    const u64 round = entry.metadata;
    const u64 thread = (entry.prp1 - reinterpret_cast<u64>(data.to_controller)) / sizeof(u64);
    // Whatever an entry is that was never written, or half: nothing is touched but what is this queue's.
    if (thread >= data.threads || thread % data.submitters() % data.queues_count != q) return false;
    const bool whole = entry.opcode == message_opcode && entry.command_id == slot_of(rings, position) &&
                       entry.namespace_id == static_cast<u32>(round) &&
                       entry.prp2 == reinterpret_cast<u64>(data.to_submitter + thread) &&
                       entry.dword10 == static_cast<u32>(round) && (entry.dword14 | u64{entry.dword15} << 32) == round;
    // A round that is left out is one whose entry was not seen: that one has been counted.
    const bool next = round > data.seen[thread];
    if (next) data.seen[thread] = round;
    const bool right = is_message(data.to_controller, round, thread, 0);
    if (whole && !data.is_spoiled(round)) write_message(data.to_submitter, round, thread, message_words);
    return whole && next && right;
  }

  /// Of the slot, not of the entry, which may be an old one: no identifier here is ever of a later generation.
  PENSTOCK_FN void post(queue_rings const& rings, u64 position, u64 taken) const {
    nvme::completion_entry& entry = rings.cq[position & (rings.cq_entries - 1)];
    const u32 phase = 1 - static_cast<u32>(position / rings.cq_entries & 1);
    system_ref<u32>(entry.result).store(0, relaxed);
    system_ref<u32>(entry.reserved).store(0, relaxed);
    system_ref<u32>(entry.queue).store(slot_of(rings, taken) | static_cast<u32>(rings.id) << 16, relaxed);
    const auto id = static_cast<u16>(slot_of(rings, position));
    system_ref<u32>(entry.outcome).store(nvme::make_outcome(id, phase, nvme::code::success), FarOrder::posted);
  }

  PENSTOCK_FN static u32 slot_of(queue_rings const& rings, u64 position) {
    return static_cast<u32>(position) & (rings.sq_entries - 1);
  }
};

}  // namespace penstock::bench
