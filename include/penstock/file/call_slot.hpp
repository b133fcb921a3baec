// Calls to the host, made by a group together: a slot, its record, one command, one wait.
#pragma once

#include "penstock/array/writable_view.hpp"
#include "penstock/core/ordinal.hpp"
#include "penstock/file/file_call.hpp"
#include "penstock/nvme/prp.hpp"
#include "penstock/queue/result_sink.hpp"
#include "penstock/write_back/flush.hpp"

#include <bit>

namespace penstock {

/// A call's state in local memory; its record has the same number. One that did not end in time stays taken: the host may still
/// answer it.
struct alignas(64) call_slot {
  u32 taken = 0;
  u32 result = 0;  ///< see result_sink
  u32 slot = 0;    ///< of the queue pair
  flush_report report;
};

/// What calls go through. Trivially copyable; the host-side `folder` owns what it points at.
struct call_slots {
  call_slot* slots = nullptr;
  file_call* records = nullptr;
  queue_pair_view<result_sink> const* queues = nullptr;
  u32 slots_count = 0;
  u32 queues_count = 0;
  u64 timeout_ns = 0;
  u8 opcode = 0;

  static constexpr u32 none = ~0u;

  /// A slot for this group; `none` if none was given back in time. Collective: all members go through the loop, for those that
  /// waited for a leader that sleeps would be let go (PROTOCOLS.md, "Lanes of a warp").
  template <thread_group G>
  PENSTOCK_COLD u32 acquire(G g) const {
    backoff wait(timeout_ns);
    u64 at = from_leader(g, executor_ordinal());
    for (u32 looked = 0;; at += size(g)) {
      const u32 mine = static_cast<u32>((at + index_in(g)) % slots_count);
      const auto found = g.ballot(device_ref<u32>(slots[mine].taken).load(relaxed) == 0);
      if (any(found)) {
        const u32 chosen = static_cast<u32>(g.shfl(mine, lowest(found)));
        u32 free = 0;
        const bool won =
            is_leader(g) && device_ref<u32>(slots[chosen].taken).compare_exchange_strong(free, 1, penstock::acquire, relaxed);
        if (from_leader(g, won) != 0) {
          if (is_leader(g)) {
            slots[chosen].result = 0;
            slots[chosen].report = {};
          }
          return chosen;
        }
      }
      looked += size(g);
      if (looked < slots_count) continue;
      looked = 0;
      if (from_leader(g, wait.pause()) == 0) return none;
    }
  }

  /// Collective.
  template <thread_group G>
  PENSTOCK_FN void release(G const& g, u32 slot) const {
    converge_after_call(g);
    if (is_leader(g) && slot != none) device_ref<u32>(slots[slot].taken).store(0, penstock::release);
  }

  /// Sends a call and waits for its answer. `path` and `other`: names of as many bytes as `asked` says, in any memory that the
  /// group's threads reach. Collective. False, with an errno in `given`, if the answer did not come: the slot is not to be
  /// given back then.
  template <thread_group G>
  PENSTOCK_COLD bool call(G g, u32 slot, file_call::request const& asked, char const* path, char const* other,
                          file_call::answer& given) const {
    file_call& record = records[slot];
    if (is_leader(g)) {
      store_text(record.path, path, asked.path_bytes);
      store_text(record.other, other, asked.other_bytes);
      store_words(&record.asked, asked);
    }
    transfer t;
    t.command.opcode = opcode;
    t.command.namespace_id = 1;
    t.address = reinterpret_cast<u64>(&record);
    t.bytes = sizeof(u64);
    t.writes = true;
    const queue_pair_view<result_sink> queue = queues[slot % queues_count];
    const result_sink::target to{&slots[slot].result, &slots[slot].slot};
    status outcome = queue.submit(g, is_leader(g), t, to);
    const bool sent = from_leader(g, outcome.ok()) != 0;
    if (sent) outcome = wait_for(g, queue, is_leader(g), to);
    outcome = unpack_status(static_cast<u32>(from_leader(g, pack(outcome))));
    if (outcome.ok()) {
      given = load_answer(g, record);
      return true;
    }
    given = {};
    given.error = error_of(outcome);
    // What was not submitted, or was answered with an error, is over for the host, too.
    return !sent || outcome.domain == status_domain::nvme;
  }

  /// The errno of what a command met.
  PENSTOCK_FN static u32 error_of(status why) {
    if (why.ok()) return 0;
    if (why == make_status(failure::deadline)) return ETIMEDOUT;
    if (why == make_status(failure::no_frame)) return ENOMEM;
    if (why == make_status(failure::resetting)) return EAGAIN;
    if (why == status{status_domain::nvme, nvme::code::capacity_exceeded}) return ENOSPC;
    return EIO;
  }

  /// A word of a record that the host has answered. Past L1: the host stored it.
  PENSTOCK_FN static u64 load_word(void const* from) {
    return system_ref<u64>(*const_cast<u64*>(static_cast<u64 const*>(from))).load(relaxed);
  }

 private:
  template <class T>
  struct words_of {
    u64 word[sizeof(T) / sizeof(u64)];
  };

  template <class T>
  PENSTOCK_FN static void store_words(T* to, T const& from) {
    const auto all = std::bit_cast<words_of<T>>(from);
    for (u32 k = 0; k < sizeof(T) / sizeof(u64); ++k)
      system_ref<u64>(reinterpret_cast<u64*>(to)[k]).store(all.word[k], relaxed);
  }

  template <thread_group G>
  PENSTOCK_FN static file_call::answer load_answer(G const& g, file_call const& record) {
    words_of<file_call::answer> all;
    for (u32 k = 0; k < sizeof all / sizeof(u64); ++k) {
      all.word[k] = from_leader(g, is_leader(g) ? load_word(reinterpret_cast<u64 const*>(&record.given) + k) : 0);
    }
    return std::bit_cast<file_call::answer>(all);
  }

  PENSTOCK_FN static void store_text(char* to, char const* from, u32 bytes) {
    for (u32 at = 0; at < bytes; at += 8) {
      u64 word = 0;
      for (u32 k = 0; k < 8 && at + k < bytes; ++k) word |= static_cast<u64>(static_cast<u8>(from[at + k])) << 8 * k;
      system_ref<u64>(*reinterpret_cast<u64*>(to + at)).store(word, relaxed);
    }
  }
};

}  // namespace penstock
