// The controller's half of one queue pair: takes commands out of the submission queue in order and posts completions.
//
// Used by one thread at a time. Memory orders are the partners of PROTOCOLS.md §3, lines 16, 21, 23 and 32.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/core/atomic.hpp"

#include <deque>

namespace penstock::controllers {

/// What the modelled controller does to its host on purpose.
struct ring_mischief {
  bool poison_fetched = false;   ///< a fetched entry is overwritten at once: whoever reads it again, or wrote it late, is found
  bool torn_completion = false;  ///< dwords 0 and 2 hold garbage until dword 3 is stored
};

class ring_server {
 public:
  explicit ring_server(queue_rings const& rings, ring_mischief mischief = {});

  /// Copies the next command out. False when there is none.
  bool fetch(nvme::submission_entry& command);

  /// Posts a completion, or keeps it until the host has made room. `status` is type << 8 | code.
  void complete(u16 command_id, u16 status, u32 result = 0);

  /// Posts what waits for room. True if any was posted.
  bool drain();

  /// Completions wait for room; to fetch more would let them pile up without bound.
  bool congested() const { return !backlog_.empty(); }

  u16 id() const { return rings_.id; }

  /// Doorbell values that no correct host writes. Each new one counts once and is ignored.
  u64 refused_doorbells() const { return refused_; }

 private:
  struct waiting_completion {
    u16 command_id;
    u16 status;
    u32 result;
  };

  bool look_for_commands();
  bool room();
  void post(waiting_completion const& completion);
  void refuse(u32 value, u32& last_refused);

  queue_rings rings_;
  ring_mischief mischief_;
  u32 sq_head_ = 0;
  u32 sq_tail_ = 0;  ///< as far as the doorbell has been read
  u32 cq_head_ = 0;  ///< likewise
  u32 cq_tail_ = 0;
  u32 phase_ = 1;  ///< of the lap being written; the first lap writes 1
  u32 refused_tail_ = no_value;
  u32 refused_head_ = no_value;
  u64 refused_ = 0;
  std::deque<waiting_completion> backlog_;

  static constexpr u32 no_value = 0xffffffffu;
};

}  // namespace penstock::controllers
