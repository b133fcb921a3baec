// A drive that moves only when its thread of a scheduled run does (support/scheduler.hpp).
#pragma once

#include "support/scheduler.hpp"

#include "penstock/controller/controller.hpp"
#include "penstock/core/copy_into_frame.hpp"
#include "penstock/nvme/command.hpp"

#include <deque>
#include <span>

namespace penstock::test {

/// Serves one queue over memory, a command in a step; which, and how it ends, is drawn.
class stepped_drive final : public controller {
 public:
  static constexpr u64 block_bytes = 512;
  static constexpr u64 page = 4096;

  explicit stepped_drive(std::span<std::byte> media) : media_(media) {}

  /// One command in so many fails, Flushes aside; 0: none.
  void fail_one_in(u32 n) { fails_ = n; }
  /// One command in so many is begun so much later; 0: none.
  void delay_one_in(u32 n, u64 ns) {
    delays_ = n;
    delay_ns_ = ns;
  }

  /// Commands that it has taken from the ring.
  u64 fetched() const { return fetched_; }

  /// What there is to do at one moment: fetches all that is rung, and ends one command. False: it has ended none.
  bool step(scheduler& run) {
    const u32 tail = system_ref<u32>(*rings_.sq_doorbell).load(acquire);
    for (; head_ != tail; head_ = (head_ + 1) % rings_.sq_entries, ++fetched_) {
      const bool late = delays_ != 0 && run.draw() % delays_ == 0;
      waiting_.push_back({rings_.sq[head_], late ? run.now_ns() + delay_ns_ : 0});
    }
    const u32 next = (posted_ + 1) % rings_.cq_entries;
    if (waiting_.empty() || next == system_ref<u32>(*rings_.cq_doorbell).load(acquire)) return false;
    const auto chosen = waiting_.begin() + static_cast<std::ptrdiff_t>(run.draw() % waiting_.size());
    if (chosen->begins_ns > run.now_ns()) return false;
    const nvme::submission_entry command = chosen->entry;
    waiting_.erase(chosen);
    const auto op = static_cast<nvme::opcode>(command.opcode);
    const bool fails = op != nvme::opcode::flush && fails_ != 0 && run.draw() % fails_ == 0;
    if (op != nvme::opcode::flush && !fails) move(run, op, command);
    post(command.command_id, fails ? nvme::code::internal_error : nvme::code::success);
    return true;
  }

  void attach(queue_rings const& rings) override { rings_ = rings; }
  void detach(u16) override {}
  void poll(u16) override {}
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return {16, 16384, page}; }
  std::string engine() const override { return "stepped"; }

 private:
  struct fetched_command {
    nvme::submission_entry entry;
    u64 begins_ns;
  };

  // Word by word: who reads or stores meanwhile is let in between.
  void move(scheduler& run, nvme::opcode op, nvme::submission_entry const& command) {
    const u64 start = (static_cast<u64>(command.dword11) << 32 | command.dword10) * block_bytes;
    const u64 bytes = ((command.dword12 & 0xffffu) + 1) * block_bytes;
    if (bytes > page) run.fail("a command of more than a page");  // of two at most, which follow each other
    if (start + bytes > media_.size()) run.fail("a command beyond the end of the medium");
    void* const memory = reinterpret_cast<void*>(command.prp1);
    if (op == nvme::opcode::write) {
      copy_from_frame(media_.data() + start, memory, bytes);
    } else {
      copy_into_frame(memory, media_.data() + start, bytes);
    }
  }

  // Dword 2 is worth nothing before dword 3 is there.
  void post(u16 id, u16 code) {
    nvme::completion_entry& entry = rings_.cq[posted_ % rings_.cq_entries];
    const u32 phase = 1 - (posted_ / rings_.cq_entries & 1);
    const u32 queue = head_ | static_cast<u32>(rings_.id) << 16;
    system_ref<u32>(entry.queue).store(~queue, relaxed);
    system_ref<u32>(entry.queue).store(queue, relaxed);
    system_ref<u32>(entry.outcome).store(nvme::make_outcome(id, phase, code), release);
    ++posted_;
  }

  std::span<std::byte> media_;
  queue_rings rings_;
  std::deque<fetched_command> waiting_;
  u32 fails_ = 0, delays_ = 0;
  u64 delay_ns_ = 0;
  u32 head_ = 0;
  u32 posted_ = 0;
  u64 fetched_ = 0;
};

}  // namespace penstock::test
