// A controller that answers as the test tells it, while it runs: serve, fail with a code, or hold a Read until later. One
// namespace over memory; polled in place, so that a test with one thread is deterministic. Its admin queue is the model's.
#pragma once

#include "penstock/controller/model_controller.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/core/copy_into_frame.hpp"
#include "penstock/nvme/command.hpp"
#include "penstock/nvme/prp.hpp"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>

namespace penstock::test {

/// What becomes of one Read or Write.
struct verdict {
  u16 code = 0;       ///< status type << 8 | code; 0: its data is moved
  bool hold = false;  ///< not now; it is judged again at the next poll
};

/// Thread-safe.
class scripted_controller final : public controller {
 public:
  static constexpr u32 block_bytes = 512;

  explicit scripted_controller(std::span<std::byte> media) : media_(media), admin_({}) { admin_.add_namespace(media); }

  /// The same for Writes; Flushes are always answered well.
  void answer_writes(std::function<verdict(u64)> judge) {
    const std::lock_guard lock(mutex_);
    judge_write_ = std::move(judge);
  }
  /// From now on each Read is judged by judge(its first byte in the namespace). Called under a lock.
  void answer(std::function<verdict(u64)> judge) {
    const std::lock_guard lock(mutex_);
    judge_ = std::move(judge);
  }
  void serve_all() {
    answer([](u64) { return verdict{}; });
  }
  void hold_all() {
    answer([](u64) { return verdict{0, true}; });
  }
  void fail_all(u16 code) {
    answer([code](u64) { return verdict{code}; });
  }

  /// Reads that came in so far.
  u64 fetched() const {
    const std::lock_guard lock(mutex_);
    return fetched_;
  }

  void attach(queue_rings const& rings) override {
    if (rings.id == 0) return admin_.attach(rings);
    const std::lock_guard lock(mutex_);
    served_[rings.id] = {rings};
  }
  void detach(u16 id) override {
    if (id == 0) return admin_.detach(id);
    const std::lock_guard lock(mutex_);
    served_.erase(id);
  }
  void poll(u16 id) override {
    if (id == 0) return admin_.poll(id);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) serve(served_.at(id));
  }
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return admin_.limits(); }
  std::string engine() const override { return "scripted"; }

 private:
  struct queue {
    queue_rings rings;
    u32 sq_head = 0;
    u32 cq_tail = 0;
    u32 phase = 1;
    std::deque<nvme::submission_entry> waiting{};
  };

  void serve(queue& q) {
    const u32 tail = system_ref<u32>(*q.rings.sq_doorbell).load(acquire);
    for (; q.sq_head != tail; q.sq_head = (q.sq_head + 1) % q.rings.sq_entries, ++fetched_) {
      q.waiting.push_back(q.rings.sq[q.sq_head]);
    }
    for (u64 left = q.waiting.size(); left != 0; --left) {
      const nvme::submission_entry command = q.waiting.front();
      q.waiting.pop_front();
      const u64 start = (static_cast<u64>(command.dword11) << 32 | command.dword10) * block_bytes;
      const auto op = static_cast<nvme::opcode>(command.opcode);
      const verdict what = op == nvme::opcode::flush   ? verdict{}
                           : op == nvme::opcode::write ? judge_write_(start)
                                                       : judge_(start);
      const u32 next = (q.cq_tail + 1) % q.rings.cq_entries;
      if (what.hold || next == system_ref<u32>(*q.rings.cq_doorbell).load(acquire)) {
        q.waiting.push_back(command);
        continue;
      }
      if (what.code == 0 && op != nvme::opcode::flush) move_data(command, start);
      complete(q, command.command_id, what.code);
    }
  }

  void move_data(nvme::submission_entry const& command, u64 start) {
    const u64 bytes = ((command.dword12 & 0xffffu) + 1) * block_bytes;
    const bool listed = nvme::prp_list_entries(command.prp1, bytes) != 0;
    u64 page = command.prp1;
    for (u64 done = 0, index = 0; done < bytes; ++index) {
      const u64 piece = std::min(bytes - done, nvme::next_page(page) - page);
      if (static_cast<nvme::opcode>(command.opcode) == nvme::opcode::write) {
        copy_from_frame(media_.data() + start + done, reinterpret_cast<void const*>(page), piece);
      } else {
        copy_into_frame(reinterpret_cast<void*>(page), media_.data() + start + done, piece);
      }
      done += piece;
      if (done != bytes) page = listed ? reinterpret_cast<u64 const*>(command.prp2)[index] : command.prp2;
    }
  }

  static void complete(queue& q, u16 id, u16 code) {
    nvme::completion_entry& entry = q.rings.cq[q.cq_tail];
    system_ref<u32>(entry.result).store(0, relaxed);
    system_ref<u32>(entry.queue).store(q.sq_head | static_cast<u32>(q.rings.id) << 16, relaxed);
    system_ref<u32>(entry.outcome).store(nvme::make_outcome(id, q.phase, code), release);
    if (++q.cq_tail == q.rings.cq_entries) {
      q.cq_tail = 0;
      q.phase ^= 1u;
    }
  }

  std::span<std::byte> media_;
  model_controller admin_;
  mutable std::mutex mutex_;
  std::function<verdict(u64)> judge_ = [](u64) { return verdict{}; };
  std::function<verdict(u64)> judge_write_ = [](u64) { return verdict{}; };
  std::map<u16, queue> served_;
  u64 fetched_ = 0;
};

}  // namespace penstock::test
