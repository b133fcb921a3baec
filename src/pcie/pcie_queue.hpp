// One I/O queue pair of a drive, as the queue table serves it: its doorbells are words of memory, and what is new there goes to
// the registers.
#pragma once

#include "../controller/queue_table.hpp"
#include "controller_memory.hpp"
#include "controller_registers.hpp"
#include "lives.hpp"
#include "shadow_doorbells.hpp"

#include "penstock/controller/controller.hpp"

#include <functional>

namespace penstock::pcie {

class pcie_queue final : public controllers::served_queue {
 public:
  /// What lies elsewhere than the host has it: doorbells that the controller reads in memory, a submission ring in its own.
  struct places {
    shadow_doorbell submission, completion;
    ring_copy ring;
    bool in_registers = false;  ///< doorbells that kernels store to by themselves
  };

  /// `let_go`: see to it that the controller has done with the queue; false where that cannot be.
  pcie_queue(queue_rings const& rings, controller_registers& registers, lives& life, std::function<bool()> let_go,
             places const& at)
      : rings_(rings), registers_(registers), lives_(life), life_(life.current.load()), let_go_(std::move(let_go)),
        told_here_(!at.in_registers), copy_(at.ring), submission_{0, 0, at.submission}, completion_{0, 0, at.completion} {}

  bool serve() override;
  bool quiesce(u64) override { return life_ != lives_.current.load(relaxed) || let_go_(); }

 private:
  struct doorbell {
    u32 told = 0;
    u32 refused = 0;
    shadow_doorbell shadow;
  };

  bool forward(u32* from, doorbell& last, bool completion, u32 entries);

  queue_rings rings_;
  controller_registers& registers_;
  lives& lives_;
  u64 life_;
  std::function<bool()> let_go_;
  bool told_here_;
  ring_copy copy_;
  doorbell submission_, completion_;
};

}  // namespace penstock::pcie
