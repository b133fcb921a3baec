// The queue pair: one algorithm for every controller (PROTOCOLS.md §3). Groups of threads take tickets, write commands into the
// slots that their tickets name and publish them; the holder of the ring lock rings the doorbell for all groups; the holder of
// the harvest lock finishes the completions of all groups. No thread waits for a lock.
//
// A slot's word is 4 * ticket + phase; all positions are 64-bit counts, taken modulo the ring's size only to index it. The
// `Sink` says what a completion means to the layer above (see `completion_sink`).
//
// Invariants. Q1: a ticket is published once and rung once, in order. Q2: a ticket is rung only when the one `in_flight_limit`
// before it is done, so the tail never meets the head. Q4: each published command ends in exactly one finish or abandon,
// because a slot leaves the phase `published` by one compare-and-swap. Q5: a completion is read only after its phase was seen,
// and the completion doorbell moves only after every lane has read. Q8: doorbell values never go back (both locks are released
// at system scope). Q12: no ticket is given between the closing of a reset and its end, and what was given before has been
// published or withdrawn when the reset begins its work; a ticket, once given, is never given again.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/core/doorbell.hpp"
#include "penstock/core/host_call.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/core/queue_order.hpp"
#include "penstock/core/status.hpp"
#include "penstock/group/thread_group.hpp"
#include "penstock/nvme/command.hpp"

#include <concepts>
#include <type_traits>

namespace penstock {

/// What a completion means to the layer that submitted the command. `target` is small, trivially copyable and says where.
/// None of the functions may wait.
template <class S>
concept completion_sink = std::is_trivially_copyable_v<typename S::target> &&
                          requires(typename S::target const& target, u16 n, status outcome, bool b) {
                            /// The command got a slot of the queue pair with this index; not yet published.
                            S::placed(target, n, n);
                            /// The command is over. REQUIRES: order_before_telling() by this thread.
                            S::finish(target, outcome);
                            /// The command is given up, but the controller may still write its buffer (b: the target itself,
                            /// not a bounce buffer): what is reported to waiters, and kept until `resolve`. REQUIRES: likewise.
                            S::abandon(target, outcome, b);
                            /// A late completion proved that the abandoned command is over.
                            S::resolve(target, b);
                          };

/// Phases of a slot word, its two lowest bits.
enum class slot_phase : u32 { free = 0, published = 1, landed = 2, finishing = 3 };

/// Positions and locks of one queue pair, in local memory. Each group of fields has a cache line of its own.
struct queue_state {
  /// Beside the count in `ticket`: closed for a reset. What is added meanwhile is lost when the ticket is stored anew.
  static constexpr u64 closed = 1ull << 63;
  /// Bits of `stopped`.
  static constexpr u32 given_up = 1, closing = 2;

  alignas(128) u64 ticket = 0;     ///< next to give; fetch_add by submitters
  u64 settled = 0;                 ///< tickets whose commands are published or withdrawn, of all time: submitters add with
                                   ///< release, partner: `try_quiesce`
  alignas(128) u64 rung = 0;       ///< tickets announced to the controller; written under ring_lock, before the doorbell
  u32 ring_lock = 0;               ///< 0 or 1
  alignas(128) u64 cq_head = 0;    ///< completions read; written under harvest_lock
  u64 next_expiry_ns = 0;          ///< when deadlines are looked at next; under harvest_lock
  u32 harvest_lock = 0;            ///< 0 or 1
  u32 stuck_positions = 0;         ///< expired slots whose position the controller has not passed; under harvest_lock
  u64 fetched = 0;                 ///< tickets that the controller is known to have fetched; under harvest_lock
  u32 spare_buffers = 0;           ///< bounce buffers left in `spares`; under harvest_lock
  alignas(128) u32 stopped = 0;    ///< why submitters withdraw; set with release, partner: `why_stopped`, `failure_status`
  u32 failure = 0;                 ///< packed status, stored before `stopped` gets `given_up`
  alignas(128) u64 doorbells = 0;  ///< counters, written by lock holders only
  u64 completions = 0;
  u64 errors = 0;  ///< of those completions: with a status that is not success
  u64 strays = 0;
  u64 expired = 0;
  u64 failed = 0;     ///< commands in flight when the controller was given up
  u64 reset = 0;      ///< commands that a reset answered
  u64 withdrawn = 0;  ///< tickets whose commands were not published; added to by submitters, off their usual way
  u64 given = 0;      ///< tickets given when the queue was closed; of a reset, like the next
  u64 skipped = 0;    ///< tickets that were never given: those before the first, and the rest of a ring at each reset
};

/// Room for the PRP list of one buffer of up to 64 KiB: 15 entries and a spare.
inline constexpr u64 prp_list_stride = 16 * sizeof(u64);

/// How often deadlines are looked at, at most.
inline constexpr u64 expiry_period_ns = one_millisecond_ns;

/// What one command moves and where.
struct transfer {
  nvme::submission_entry command;  ///< all but identifier and data pointer
  u64 address = 0;                 ///< bus address of the data (frame), 0 for none
  u64 prp_list = 0;                ///< bus address of its PRP list, where one is needed
  u32 bytes = 0;
  bool writes = false;    ///< the controller reads the data (Write), rather than writes it (Read)
  bool straight = false;  ///< the controller reaches `address`, also where others of the queue pair need a bounce buffer
};

/// A handle for kernels: trivially copyable, all pointers into memory that a host-side `queue_pair` owns. Aligned so that a
/// copy of it takes few instructions.
template <completion_sink Sink>
class alignas(16) queue_pair_view {
 public:
  using target = typename Sink::target;

  /// Slot context: what to do on completion. Plain fields: written by the slot's owner before it publishes the word (release),
  /// read by others after they have seen the word (acquire).
  struct context {
    target to;
    u64 address;      ///< where a landed bounce buffer is copied to
    u64 deadline_ns;  ///< from its submission; once it is rung, from then: written by the ringer, read by expire (atomic)
    u32 bytes;
    bool drains;   ///< a Read through the bounce buffer
    bool exposed;  ///< the controller was given `address` itself
  };

  /// A command that is over for its waiters but not for the controller. Under harvest_lock.
  struct quarantine {
    target to;
    u64 bounce;  ///< bus address of the buffer that the slot gave up; 0: none, the controller has the target's own
    u64 ticket;  ///< whose position is stuck until the controller's head passes it
    u32 held;    ///< 1: a completion with the old identifier is still to come
    u32 stuck;   ///< 1: the position has not been passed
    u32 failed;  ///< 1: the slot's command, as its context has it, was ended with the controller; until a reset
    u32 asked;   ///< 1: the controller is being asked to abort the old identifier, so that it must not come alive meanwhile
  };

  // What a lone command needs first: after an acquire each 32 bytes are a trip to L2.
  queue_state* state = nullptr;
  u64* words = nullptr;                  ///< [depth] slot words
  context* contexts = nullptr;           ///< [depth]
  u32* generations = nullptr;            ///< [depth] 0 or 1; identifier = slot + depth * generation
  nvme::submission_entry* sq = nullptr;  ///< [depth], shared
  nvme::completion_entry* cq = nullptr;  ///< [cq_entries], shared
  u32* sq_doorbell = nullptr;            ///< shared, or a register of the device
  u32* cq_doorbell = nullptr;            ///< likewise
  u64* bounces = nullptr;   ///< [depth] address of each slot's bounce buffer; null: data goes straight to its address
  u64 timeout_ns = 0;       ///< deadline of a command, from when it is rung
  u32 depth = 0;            ///< D
  u32 depth_mask = 0;       ///< D - 1 where D is a power of two, else 0: a 64-bit division takes a GPU about a hundred steps
  u32 in_flight_limit = 0;  ///< N = min(D, C) - 1
  u32 cq_entries = 0;       ///< C
  u32 cq_shift = 0;         ///< log2 of C where it is a power of two, else 0
  u16 id = 0;               ///< of the controller
  u16 index = 0;            ///< in the table of queue pairs that this one belongs to
  doorbell_kind doorbells = doorbell_kind::memory;
  bool rings_on_host = false;          ///< looking at the CQ costs a trip over the link: only the lock holder does
  void (*poll)(void*, u16) = nullptr;  ///< CPU executor: lets the controller work in this thread; null otherwise
  void* poll_target = nullptr;
  quarantine* quarantines = nullptr;  ///< [depth]
  u64* spares = nullptr;              ///< bounce buffers for slots whose own is quarantined
  u64 bounce_base = 0;                ///< address of the first bounce buffer
  u64 bounce_lists = 0;               ///< address of their PRP lists, `prp_list_stride` each
  u32 bounce_bytes = 0;               ///< size of one

  /// Submits one command per lane that wants to. Collective; returns when all are rung, or withdrawn.
  /// Returns this lane's status: ok, or why its command was not submitted (then Sink heard nothing of it but `placed`).
  /// Waits for slots only; every command ahead ends by its deadline, so this does.
  template <thread_group G>
  PENSTOCK_COLD status submit(G g, bool want, transfer const& t, target const& to) const;

  /// Rings, harvests, drains one landed slot, looks at deadlines: whatever there is to do, never waiting. Collective. True if
  /// something moved.
  template <thread_group G>
  PENSTOCK_COLD bool progress(G g) const;

  /// A command of one thread that goes straight to its address.
  struct sent_command {
    target to;
    u64 word = 0;  ///< of its slot, published
    u32 slot = 0;
    u32 identifier = 0;
  };

  /// Submits one command, for one thread, if nothing stands before it (all tickets are rung, its slot is free, no thread is
  /// ringing) and rings and data are near. False: nothing was done. Never waits.
  PENSTOCK_FN bool try_send(transfer const& t, target const& to, sent_command& mine) const;

  /// What one thread found at the head of the completion ring.
  enum class taken : u32 {
    none,   ///< nothing new, or another thread is at it
    own,    ///< its command's, good: finished, and what it brought is this thread's to read
    other,  ///< another one, finished
    crowd,  ///< more than one, or something else to do: progress
  };

  /// Takes the completion at the head of the ring, for one thread that waits for its command: the shortest way to it. `head`:
  /// where it was when this was called last, at first 0. Never waits. REQUIRES: `mine` was sent by try_send.
  PENSTOCK_FN taken take_next(sent_command const& mine, u64& head) const;

  /// Whether progress is worth its call, by a look without locks; for one thread.
  PENSTOCK_FN bool stirs() const {
    if (poll != nullptr) return true;
    const glance seen = look();
    return seen.ring || seen.harvest;
  }

  /// The same for all lanes of a group. Collective.
  template <thread_group G>
  PENSTOCK_FN bool stirs(G const& g) const {
    return from_leader(g, is_leader(g) && stirs()) != 0;
  }

  /// Whether another thread is at the completions; a hint.
  PENSTOCK_FN bool is_harvested() const { return device_ref<u32>(state->harvest_lock).load(relaxed) != 0; }

  /// Copies a landed slot's bounce buffer to its target and finishes it; false if the slot is not landed or another group
  /// has it. Collective, same slot for all.
  template <thread_group G>
  PENSTOCK_FN bool drain(G const& g, u32 slot) const;

  /// Whether a slot's word is that of a landed command; a hint, for a waiter that wants to drain its own line.
  PENSTOCK_FN static bool is_landed(u64& word) { return phase_of(device_ref<u64>(word).load(relaxed)) == slot_phase::landed; }

  /// Why the controller was given up; ok while it works.
  PENSTOCK_FN status failure_status() const {
    if ((device_ref<u32>(state->stopped).load(acquire) & queue_state::given_up) == 0) return {};
    return unpack_status(device_ref<u32>(state->failure).load(relaxed));
  }

  // The steps of a reset, in this order (queue_pair_reset.hpp; the host-side queue_pair::reset takes them). Collective; one
  // group at a time. Other groups may submit, wait and drain meanwhile.

  /// No ticket is given any more, and a waiter for a slot withdraws.
  template <thread_group G>
  PENSTOCK_FN void close(G const& g) const;
  /// Waits until all tickets are settled, and takes both locks. False, with neither, if that does not come true in time.
  template <thread_group G>
  PENSTOCK_FN bool quiesce(G const& g, u64 patience_ns) const;
  /// Ends every command with failure::resetting (with its data, where that has landed), and every quarantine. False if another
  /// thread copies a landed buffer for longer than that; may then be called again. REQUIRES: quiesced, and the controller
  /// writes nothing any more.
  template <thread_group G>
  PENSTOCK_FN bool answer_all(G const& g, u64 patience_ns) const;
  /// Reinitialises all but tickets and counters, which go on. REQUIRES: answered.
  template <thread_group G>
  PENSTOCK_FN void start_over(G const& g) const;
  /// Gives tickets again, and the locks back. REQUIRES: started over, and a controller that serves the rings.
  template <thread_group G>
  PENSTOCK_FN void reopen(G const& g) const;
  /// Gives the locks back to a queue that stays closed; `fails`: and gives up its controller.
  template <thread_group G>
  PENSTOCK_FN void unlock(G const& g, bool fails) const;

  // Before a reset, and perhaps instead of it: commands that were given up are aborted (queue_pair::abort_late). Collective;
  // one group at a time.

  /// Writes identifiers that were given up and whose completions are still to come to `ids`, no more than `most` of them, and
  /// keeps them dead until `await_late`. Returns how many; 0 where the controller was given up, or the lock is not had in time.
  template <thread_group G>
  PENSTOCK_FN u32 name_late(G const& g, u64 patience_ns, u16* ids, u32 most) const;
  /// Waits until all that were named have been completed, or the time is up. Returns how many have.
  template <thread_group G>
  PENSTOCK_FN u32 await_late(G const& g, u64 patience_ns) const;

  /// Whether only a reset can make it whole: given up, closed, or with something in quarantine. Collective.
  template <thread_group G>
  PENSTOCK_FN bool is_broken(G const& g) const;

 private:
  using order = typename queue_order_of<Sink>::type;

  /// Beside a ticket, from the leader to its group: the queue was stopped a moment before it was given.
  static constexpr u64 ticket_in_doubt = 1ull << 62;
  /// What a deadline may be short of, as a part of a command's time: one that was set at the submission, and not much later, is
  /// left as it is when the command is rung.
  static constexpr u64 deadline_slack = 64;

  /// What there may be to do, as one member saw it without a lock: a hint, loaded in two trips to memory.
  struct glance {
    bool ring = false;     ///< what is to be rung next is published, and no thread is at it
    bool harvest = false;  ///< a completion is there, or an expiry due, or unknown without the lock; and no thread is at it
    u64 next_expiry_ns = 0;
  };
  PENSTOCK_FN glance look() const;

  /// What the holder of the harvest lock finds.
  enum class harvest_reason : u32 { none, usual, some_are_stuck, failed };

  /// What a group has to settle once all of its tickets are rung.
  struct ticket_range {
    u64 end = ~0ull;  ///< the one behind them
    u32 commands = 0;
  };

  // Where the protocol's lines number them: submit 1-8, try_ring 9-17, try_harvest 18-33.
  /// What is rung now; 0 where nothing was. Tickets that it rings to their end are settled with it.
  template <thread_group G>
  PENSTOCK_FN u64 try_ring(G const& g, glance const& seen, ticket_range const& own = {}) const;
  template <thread_group G>
  PENSTOCK_FN bool try_harvest(G const& g, glance const& seen) const;
  template <thread_group G>
  PENSTOCK_FN u64 harvest_batches(G const& g, u64 head) const;
  template <thread_group G>
  PENSTOCK_FN u64 expire(G const& g, u64 head) const;
  template <thread_group G>
  PENSTOCK_FN void fail_all(G const& g, status why) const;
  template <thread_group G>
  PENSTOCK_FN void free_passed(G const& g) const;
  template <thread_group G>
  PENSTOCK_FN void drain_one(G const& g) const;

  template <thread_group G>
  PENSTOCK_FN void settle(G const& g, u32 commands, u32 withdrawn) const;
  PENSTOCK_FN void publish(u64 ticket, u32 slot, u32 identifier, transfer const& t, target const& to) const;
  PENSTOCK_FN u32 identifier_of(u32 slot) const { return slot + depth * generations[slot]; }
  PENSTOCK_FN void complete(u32 outcome, u64 rung) const;
  PENSTOCK_FN void stray(u32 slot, u32 identifier) const;
  PENSTOCK_FN bool overdue(u32 slot, u64 now) const;
  PENSTOCK_FN bool stands_still() const;
  PENSTOCK_FN void abandon(u32 slot) const;
  PENSTOCK_FN void give_up() const;
  PENSTOCK_FN bool try_quiesce() const;
  template <thread_group G>
  PENSTOCK_FN bool take_harvest_lock(G const& g, u64 patience_ns) const;
  template <thread_group G>
  PENSTOCK_FN bool any_late(G const& g) const;
  PENSTOCK_FN void answer(u32 slot) const;
  PENSTOCK_FN bool being_drained(u32 slot) const;
  PENSTOCK_FN void end_quarantines(u32 slot) const;
  PENSTOCK_FN u64 take_spare() const;
  PENSTOCK_FN void count_fetched(u32 sq_head, u64 rung) const;

  PENSTOCK_FN u32 slot_of(u64 ticket) const {
    return depth_mask != 0 ? static_cast<u32>(ticket) & depth_mask : static_cast<u32>(ticket % depth);
  }
  PENSTOCK_FN u32 cq_slot_of(u64 position) const {
    return static_cast<u32>(cq_shift != 0 ? position & ((1ull << cq_shift) - 1) : position % cq_entries);
  }
  /// The phase tag that the entry at a position of the CQ gets (Q7).
  PENSTOCK_FN u32 phase_at(u64 position) const {
    return 1u - static_cast<u32>((cq_shift != 0 ? position >> cq_shift : position / cq_entries) & 1u);
  }
  PENSTOCK_FN u64 load_word(u32 slot) const { return device_ref<u64>(words[slot]).load(acquire); }
  PENSTOCK_FN static slot_phase phase_of(u64 word) { return static_cast<slot_phase>(word & 3u); }
  PENSTOCK_FN static u64 make_word(u64 ticket, slot_phase phase) { return 4 * ticket + static_cast<u64>(phase); }
  /// The word of a slot once the ticket that `word` names is over.
  PENSTOCK_FN u64 next_free(u64 word) const { return make_word(word / 4 + depth, slot_phase::free); }
  PENSTOCK_FN bool done(u64 ticket) const {
    return device_ref<u64>(words[slot_of(ticket)]).load(relaxed) >= make_word(ticket + depth, slot_phase::free);
  }
  PENSTOCK_FN bool failed() const { return (device_ref<u32>(state->stopped).load(relaxed) & queue_state::given_up) != 0; }
  /// What the leader sees, for all members: other members need not see the failure yet.
  template <thread_group G>
  PENSTOCK_FN status failure_for_all(G const& g) const {
    const u32 why = is_leader(g) && failed() ? pack(failure_status()) : 0;
    return unpack_status(static_cast<u32>(from_leader(g, why)));
  }
  /// Why the holder of a ticket withdraws; ok: it does not. The usual answer costs one load.
  PENSTOCK_FN status why_stopped() const {
    if (device_ref<u32>(state->stopped).load(relaxed) == 0) return {};
    // The word may be as old as the life before this ticket's, and a ticket withdrawn for that would be a hole in the ring for
    // good. A reset stores the ticket after it has cleared the word, so a thread that has seen such a ticket with acquire sees
    // that.
    (void)device_ref<u64>(state->ticket).load(acquire);
    const u32 now = device_ref<u32>(state->stopped).load(acquire);
    if ((now & queue_state::closing) != 0) return make_status(failure::resetting);
    return now != 0 ? unpack_status(device_ref<u32>(state->failure).load(relaxed)) : status{};
  }
  template <thread_group G>
  PENSTOCK_FN status why_stopped_for_all(G const& g) const {
    const u32 why = is_leader(g) ? pack(why_stopped()) : 0;
    return unpack_status(static_cast<u32>(from_leader(g, why)));
  }
};

/// How long a submitter lets the ring stand still: renewed as long as tickets are rung, and with one more look at the end (W7).
class ring_patience {
 public:
  PENSTOCK_FN ring_patience(u64 timeout_ns, u64 rung) : timeout_ns_(timeout_ns), rung_(rung), wait_(timeout_ns) {}

  /// False once nothing has been rung for the whole time.
  PENSTOCK_FN bool pause(u64 rung) {
    if (wait_.pause()) return true;
    const bool moved = rung != rung_;
    if (!moved && looked_again_) return false;
    looked_again_ = !moved;
    rung_ = rung;
    if (moved) wait_ = backoff(timeout_ns_);
    return true;
  }

 private:
  u64 timeout_ns_;
  u64 rung_;
  backoff wait_;
  bool looked_again_ = false;
};

}  // namespace penstock

#include "penstock/queue/queue_pair_abort.hpp"
#include "penstock/queue/queue_pair_harvest.hpp"
#include "penstock/queue/queue_pair_reset.hpp"
#include "penstock/queue/queue_pair_submit.hpp"
