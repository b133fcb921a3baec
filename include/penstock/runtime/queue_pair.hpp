// The host's side of a queue pair: owns its memory, announces it to the controller, and takes it back.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/queue/queue_pair.hpp"
#include "penstock/runtime/reset_body.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

namespace penstock {

struct queue_options {
  u32 depth = 256;     ///< submission queue entries; 2 to 16384. Several times the wanted depth: a slow command holds up the
                       ///< ones that come `depth` later
  u32 cq_entries = 0;  ///< completion queue entries; 0: as many
  u64 timeout_ns = 30 * one_second_ns;
  u32 bounce_bytes = 0;                     ///< > 0: data goes through bounce buffers of this size, one per slot
  u32 spare_bounces = 8;                    ///< for slots whose buffer is quarantined
  u64 first_ticket = 0;                     ///< for tests: a multiple of the depth
  memory_kind rings = memory_kind::shared;  ///< where both rings and their doorbells lie; `local` (HBM)
                                            ///< for a controller that reaches it there
  bool rings_on_host = false;               ///< kernels reach the rings over a link
  bool poll_in_place = true;                ///< waiting threads let the controller work (CPU executor)
};

/// Throws penstock::error (bad_input) when a controller cannot serve such a queue.
void check_queue_options(queue_options const& options, controller_limits const& limits);

/// What a queue pair did so far, all its lives together. At rest each command is in one of four counts:
/// commands = (completions - strays) + expired + failed + reset.
struct queue_counts {
  u64 commands = 0;  ///< published
  u64 doorbells = 0;
  u64 completions = 0;
  u64 errors = 0;  ///< of them: with an error status, strays included
  u64 strays = 0;
  u64 expired = 0;
  u64 failed = 0;  ///< ended when the controller was given up
  u64 reset = 0;   ///< answered by a reset
  status failure{};
};

/// What the recovery of a queue pair took.
struct queue_recovery {
  u32 aborted = 0;  ///< commands that had been given up and ended by an Abort, or by themselves
  bool reset = false;
  u64 answered = 0;  ///< commands, by the reset
};

/// Owns one queue pair. Not copyable. REQUIRES of the destructor: no kernel uses it any more.
template <completion_sink Sink>
class queue_pair {
 public:
  using view_type = queue_pair_view<Sink>;

  queue_pair(memory_resource& memory, controller& owner, u16 id, queue_options const& options)
      : memory_(memory), controller_(owner), options_(options) {
    check_queue_options(options, owner.limits());
    if (options_.cq_entries == 0) options_.cq_entries = options_.depth;
    allocate(id);
    start();
  }
  queue_pair(queue_pair const&) = delete;
  queue_pair& operator=(queue_pair const&) = delete;
  ~queue_pair() { close(); }

  /// Takes the queue back from the controller. False if a stuck system call keeps it from letting go: it may still write the
  /// rings and whatever its commands named, so that memory is leaked on purpose, and the caller leaks its own.
  bool close() noexcept {
    try {
      detach();
    } catch (error const&) {}  // `leaked_` reports it
    return !leaked_;
  }

  /// Whether it needs a reset: its controller was given up, or something is in quarantine. `run`: see `reset`.
  template <class Run = in_this_thread>
  bool broken(Run const& run = {}) {
    return take(run, reset_step::look, 0).good != 0;
  }

  /// The first and mildest means against a command that does not end: has the controller abort those that were given up at
  /// their deadlines, so that the others of the queue go on. Returns how many of them have ended since; with all of them the
  /// queue is whole again (see `broken`). 0 where the controller did not answer an Abort, which it may carry out until it is
  /// reset: the identifiers stay dead until then. At most `abort_patience_ns` and a step's time. `run`: see `reset`; not beside
  /// one.
  template <class Run = in_this_thread>
  u32 abort_late(Run const& run = {}) {
    if (!attached_) return 0;
    backoff patience(abort_patience_ns);
    const auto left = [&] { return patience.deadline_ns() - std::min(patience.deadline_ns(), now_ns()); };
    const reset_report named = take(run, reset_step::name_late, left());
    bool aborted = false;
    for (u32 k = 0; k < named.late && left() >= least_abort_ns; ++k)
      aborted |= controller_.abort(view_.id, named.ids[k], left());
    if (named.late == 0 || controller_.failed()) return 0;
    // Where nothing was aborted, what was late may have come by itself: one look.
    return take(run, reset_step::await_late, aborted ? left() : 0).late;
  }

  /// Brings the queue back to life, whatever its controller did: stops the controller's work on this queue, answers every
  /// command that is still without an answer with failure::resetting, ends all quarantines, and begins anew. Returns how many
  /// commands it answered. What is submitted meanwhile is withdrawn with failure::resetting. One reset at a time.
  ///
  /// `run(body)` calls body(g) in one group where the queue's memory is, and returns when that is done. CPU: kernels may run,
  /// for all of their waits end when the queue closes. CUDA: no kernel may, but those whose waits end by their deadlines, for
  /// the steps wait for them (no resident queue_service).
  ///
  /// Waits for submitters, for lock holders, and for threads that copy landed data: at most `timeout_ns` for each; then for the
  /// controller. Throws penstock::error (world) when one of them does not come to rest; submissions then go on to be answered
  /// with failure::resetting. After a controller that does not let go memory is leaked as in `close`, else another reset may be
  /// tried.
  template <class Run = in_this_thread>
  u64 reset(Run const& run = {}, u64 timeout_ns = 0) {
    if (leaked_) refuse_reset(EBUSY, "its controller has not let go of it: make a new queue pair");
    if (timeout_ns == 0) timeout_ns = options_.timeout_ns;
    report_.write({&no_report, 1});
    take(run, reset_step::close, 0);
    if (take(run, reset_step::quiesce, timeout_ns).good == 0) {
      refuse_reset(ETIMEDOUT, "those who submit do not come to rest: end the kernels that use it, then reset it again");
    }
    stop_controller(run, timeout_ns);
    if (take(run, reset_step::answer, timeout_ns).good == 0) {
      take(run, reset_step::unlock, 0);
      refuse_reset(ETIMEDOUT, "landed data is still copied: end the kernels that use it, then reset it again");
    }
    const u64 answered = take(run, reset_step::start_over, 0).answered;
    try {
      attach();
    } catch (error const&) {
      take(run, reset_step::unlock, 0);
      throw;
    }
    take(run, reset_step::reopen, 0);
    return answered;
  }

  /// Makes a broken queue whole with the mildest means that does: aborts; else a reset, for which the controller deletes the
  /// queue; else that of the controller, also where all that was late has come but an Abort failed the controller. Each command
  /// of the queue has its one result within its time-out + CAP.TO + 1 s of its submission. As `reset`.
  template <class Run = in_this_thread>
  queue_recovery recover(Run const& run = {}) {
    queue_recovery done;
    done.aborted = abort_late(run);
    done.reset = done.aborted == 0 || broken(run);
    if (done.reset) done.answered = reset(run);
    return done;
  }

  view_type const& view() const { return view_; }

  queue_counts counts() const {
    queue_state state;
    memory_.read(&state, view_.state, sizeof state);
    return {state.settled - state.withdrawn,
            state.doorbells,
            state.completions,
            state.errors,
            state.strays,
            state.expired,
            state.failed,
            state.reset,
            (state.stopped & queue_state::given_up) != 0 ? unpack_status(state.failure) : status{}};
  }

  /// What `metadata_bytes` of one with these options is.
  static u64 metadata_bytes_for(queue_options const& options) {
    const u64 depth = options.depth, completions = options.cq_entries != 0 ? options.cq_entries : depth;
    const u64 of_slot = sizeof(u64) + sizeof(typename view_type::context) + sizeof(typename view_type::quarantine) +
                        sizeof(u32) + sizeof(nvme::submission_entry);
    const u64 bounces = options.bounce_bytes != 0 ? depth + options.spare_bounces : 0;
    return sizeof(queue_state) + depth * of_slot + completions * sizeof(nvme::completion_entry) +
           bounces * (options.bounce_bytes + prp_list_stride);
  }

  u64 metadata_bytes() const {
    return state_.bytes() + words_.bytes() + contexts_.bytes() + quarantines_.bytes() + generations_.bytes() + sq_.bytes() +
           cq_.bytes() + bounce_.bytes() + lists_.bytes();
  }

 private:
  // A controller's poll must not meet its attach and detach: the holder of `polled_` keeps all others out. Two polls of one
  // queue do no more than one.
  static void poll_controller(void* self, u16 id) {
    auto& pair = *static_cast<queue_pair*>(self);
    if (!pair.try_take_poll()) return;
    pair.controller_.poll(id);
    pair.polled_.store(false, std::memory_order_release);
  }
  bool try_take_poll() {
    return !polled_.load(std::memory_order_relaxed) && !polled_.exchange(true, std::memory_order_acquire);
  }

  template <class Run>
  reset_report take(Run const& run, reset_step step, u64 timeout_ns) {
    run(reset_body<Sink>{view_, step, timeout_ns, report_.data()});
    reset_report report;
    report_.read({&report, 1});
    return report;
  }

  // (3) No thread polls from here until it is attached again. REQUIRES: both locks are ours.
  template <class Run>
  void stop_controller(Run const& run, u64 timeout_ns) {
    backoff wait(timeout_ns);
    bool quiet = !attached_ || try_take_poll();
    while (!quiet && wait.pause()) quiet = try_take_poll();
    try {
      if (!quiet) refuse_reset(ETIMEDOUT, "its controller is still polled: end the kernels that use it, then reset it again");
      detach(detach_patience_ns);
    } catch (error const&) {
      take(run, leaked_ ? reset_step::fail : reset_step::unlock, 0);
      throw;
    }
  }

  [[noreturn]] void refuse_reset(int code, std::string const& remedy) const {
    throw_os_error("reset", "queue " + std::to_string(view_.id), code, remedy);
  }

  void attach() {
    u32* const words = doorbells_.data();
    const queue_rings rings{view_.id,   options_.depth, options_.cq_entries,       sq_.data(),
                            cq_.data(), words,          words + doorbell_words / 2};  // a cache line of its own
    controller_.attach(rings);
    attached_ = true;
    polled_.store(false, std::memory_order_release);
  }

  /// `patience_ns` 0: as much as the controller gives.
  void detach(u64 patience_ns = 0) {
    if (!attached_) return;
    attached_ = false;
    try {
      patience_ns == 0 ? controller_.detach(view_.id) : controller_.detach_soon(view_.id, patience_ns);
    } catch (error const&) {
      sq_.leak();
      cq_.leak();
      doorbells_.leak();
      bounce_.leak();
      lists_.leak();
      leaked_ = true;
      throw;
    }
  }

  void allocate(u16 id) {
    using enum memory_kind;
    const u32 depth = options_.depth;
    state_ = {memory_, local, 1};
    words_ = {memory_, local, depth};
    contexts_ = {memory_, local, depth};
    quarantines_ = {memory_, local, depth};
    generations_ = {memory_, local, depth};
    report_ = {memory_, local, 1};
    sq_ = {memory_, options_.rings, depth};
    cq_ = {memory_, options_.rings, options_.cq_entries};
    doorbells_ = {memory_, options_.rings, doorbell_words};
    view_.state = state_.data();
    view_.words = words_.data();
    view_.contexts = contexts_.data();
    view_.quarantines = quarantines_.data();
    view_.generations = generations_.data();
    view_.sq = sq_.data();
    view_.cq = cq_.data();
    const queue_registers registers = controller_.registers_of(id);
    const bool mapped = registers.submission != nullptr;
    if (mapped) view_.doorbells = doorbell_kind::device_register;
    if (!mapped && controller_.looks_within(sq_.data())) view_.doorbells = doorbell_kind::local_memory;
    view_.sq_doorbell = mapped ? registers.submission : doorbells_.data();
    view_.cq_doorbell = mapped ? registers.completion : doorbells_.data() + doorbell_words / 2;
    view_.timeout_ns = options_.timeout_ns;
    view_.depth = depth;
    view_.cq_entries = options_.cq_entries;
    if (is_power_of_two(depth)) view_.depth_mask = depth - 1;
    if (is_power_of_two(options_.cq_entries)) view_.cq_shift = ceil_log2(options_.cq_entries);
    view_.in_flight_limit = std::min(depth, options_.cq_entries) - 1;
    view_.id = id;
    view_.rings_on_host = options_.rings_on_host;
    if (options_.poll_in_place) {
      view_.poll = poll_controller;
      view_.poll_target = this;
    }
    if (options_.bounce_bytes != 0) allocate_bounces();
  }

  void allocate_bounces() {
    using enum memory_kind;
    const u32 buffers = options_.depth + options_.spare_bounces;
    const u64 bytes = options_.bounce_bytes;
    constexpr u64 words_per_list = prp_list_stride / sizeof(u64);
    bounce_ = {memory_, shared, buffers * bytes};
    lists_ = {memory_, shared, buffers * prp_list_stride / sizeof(u64)};
    controller_.add_buffer(bounce_.data(), bounce_.bytes());
    const u64 base = reinterpret_cast<u64>(bounce_.data());
    std::vector<u64> addresses(buffers);
    for (u32 k = 0; k < buffers; ++k) {
      addresses[k] = base + k * bytes;
      nvme::write_prp_list(lists_.data() + k * words_per_list, addresses[k], bytes);
    }
    bounce_addresses_ = {memory_, local, buffers};
    bounce_addresses_.write(addresses);
    view_.bounces = bounce_addresses_.data();
    view_.spares = bounce_addresses_.data() + options_.depth;
    view_.bounce_base = base;
    view_.bounce_lists = reinterpret_cast<u64>(lists_.data());
    view_.bounce_bytes = options_.bounce_bytes;
  }

  void start() {
    std::vector<u64> words(options_.depth);
    for (u32 s = 0; s < options_.depth; ++s) words[s] = 4 * (options_.first_ticket + s);
    words_.write(words);
    queue_state state;
    state.ticket = state.rung = state.fetched = state.skipped = options_.first_ticket;
    state.spare_buffers = options_.bounce_bytes != 0 ? options_.spare_bounces : 0;
    memory_.write(state_.data(), &state, sizeof state);
    attach();
  }

  static constexpr u32 doorbell_words = 64;
  // The two together leave the controller's own reset (CAP.TO) to end what they don't within a command's time-out + CAP.TO + 1
  // s.
  static constexpr u64 abort_patience_ns = 300 * one_millisecond_ns;
  static constexpr u64 detach_patience_ns = 400 * one_millisecond_ns;
  static constexpr reset_report no_report{};

  memory_resource& memory_;
  controller& controller_;
  queue_options options_;
  view_type view_;
  bool attached_ = false;
  bool leaked_ = false;
  std::atomic<bool> polled_{false};
  buffer<queue_state> state_;
  buffer<u64> words_;
  buffer<typename view_type::context> contexts_;
  buffer<typename view_type::quarantine> quarantines_;
  buffer<u32> generations_;
  buffer<reset_report> report_;
  buffer<nvme::submission_entry> sq_;
  buffer<nvme::completion_entry> cq_;
  buffer<u32> doorbells_;
  buffer<u8> bounce_;
  buffer<u64> lists_;
  buffer<u64> bounce_addresses_;
};

}  // namespace penstock
