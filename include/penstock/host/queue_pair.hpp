// The host's side of a queue pair: owns its memory, tells the controller of it, and takes it back.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/host/controller.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/memory.hpp"
#include "penstock/queue/queue_pair.hpp"

#include <algorithm>
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

/// What a queue pair did so far.
struct queue_counts {
  u64 commands = 0;
  u64 doorbells = 0;
  u64 completions = 0;
  u64 strays = 0;
  u64 expired = 0;
  status failure{};
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
    start(id);
  }
  queue_pair(queue_pair const&) = delete;
  queue_pair& operator=(queue_pair const&) = delete;
  ~queue_pair() { close(); }

  /// Takes the queue back from the controller. False if a stuck system call keeps it from letting go: it may still write the
  /// rings and whatever its commands named, so that memory is leaked on purpose, and the caller leaks its own.
  bool close() noexcept {
    if (closed_) return true;
    closed_ = true;
    try {
      controller_.detach(view_.id);
      return true;
    } catch (error const&) {
      sq_.leak();
      cq_.leak();
      doorbells_.leak();
      bounce_.leak();
      lists_.leak();
      return false;
    }
  }

  view_type const& view() const { return view_; }

  queue_counts counts() const {
    queue_state state;
    memory_.read(&state, view_.state, sizeof state);
    return {state.ticket - options_.first_ticket,
            state.doorbells,
            state.completions,
            state.strays,
            state.expired,
            state.failed != 0 ? unpack_status(state.failure) : status{}};
  }

  u64 metadata_bytes() const {
    return state_.bytes() + words_.bytes() + contexts_.bytes() + quarantines_.bytes() + generations_.bytes() + sq_.bytes() +
           cq_.bytes() + bounce_.bytes() + lists_.bytes();
  }

 private:
  static void poll_controller(void* owner, u16 id) { static_cast<controller*>(owner)->poll(id); }

  void allocate(u16 id) {
    using enum memory_kind;
    const u32 depth = options_.depth;
    state_ = {memory_, local, 1};
    words_ = {memory_, local, depth};
    contexts_ = {memory_, local, depth};
    quarantines_ = {memory_, local, depth};
    generations_ = {memory_, local, depth};
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
    view_.sq_doorbell = doorbells_.data();
    view_.cq_doorbell = doorbells_.data() + doorbell_words / 2;  // a cache line of its own
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
      view_.poll_target = &controller_;
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

  void start(u16 id) {
    std::vector<u64> words(options_.depth);
    for (u32 s = 0; s < options_.depth; ++s) words[s] = 4 * (options_.first_ticket + s);
    words_.write(words);
    queue_state state;
    state.ticket = state.rung = state.fetched = options_.first_ticket;
    state.spare_buffers = options_.bounce_bytes != 0 ? options_.spare_bounces : 0;
    memory_.write(state_.data(), &state, sizeof state);
    controller_.attach({id, options_.depth, options_.cq_entries, sq_.data(), cq_.data(), view_.sq_doorbell, view_.cq_doorbell});
  }

  static constexpr u32 doorbell_words = 64;

  memory_resource& memory_;
  controller& controller_;
  queue_options options_;
  view_type view_;
  bool closed_ = false;
  buffer<queue_state> state_;
  buffer<u64> words_;
  buffer<typename view_type::context> contexts_;
  buffer<typename view_type::quarantine> quarantines_;
  buffer<u32> generations_;
  buffer<nvme::submission_entry> sq_;
  buffer<nvme::completion_entry> cq_;
  buffer<u32> doorbells_;
  buffer<u8> bounce_;
  buffer<u64> lists_;
  buffer<u64> bounce_addresses_;
};

}  // namespace penstock
