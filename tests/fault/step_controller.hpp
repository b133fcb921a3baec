// A controller that does what a test tells it, right or wrong, at the moment that the test chooses: nothing happens but in
// poll.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/core/atomic.hpp"

#include <functional>
#include <mutex>
#include <vector>

namespace penstock::test {

/// One queue. poll() may come from any thread; `script` runs in one at a time.
class step_controller final : public controller {
 public:
  using script = std::function<void(step_controller&)>;

  explicit step_controller(script on_poll = {}) : on_poll_(std::move(on_poll)) {}

  void attach(queue_rings const& rings) override {
    if (on_attach) on_attach();
    rings_ = rings;
    head_ = posted_ = 0;
    fetched.clear();
  }
  void detach(u16) override {
    if (on_detach) on_detach();
    rings_ = {};
  }
  bool abort(u16, u16 command_id, u64) override {
    aborts.push_back(command_id);
    return on_abort && on_abort(command_id);
  }
  bool failed() override { return has_failed; }
  void poll(u16) override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || rings_.sq == nullptr) return;
    ++polls;
    if (on_poll_) on_poll_(*this);
  }
  /// From now on poll plays another script. REQUIRES: nobody polls.
  void play(script on_poll) { on_poll_ = std::move(on_poll); }
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return {16, 16384, 1u << 20}; }
  std::string engine() const override { return "script"; }

  /// The next command, kept in `fetched`; null if none has been rung.
  nvme::submission_entry const* fetch() {
    if (head_ == system_ref<u32>(*rings_.sq_doorbell).load(acquire)) return nullptr;
    fetched.push_back(rings_.sq[head_]);
    head_ = (head_ + 1) % rings_.sq_entries;
    return &fetched.back();
  }

  /// Posts a completion whether there is room or not. `status` is all 15 bits.
  void post(u16 command_id, u16 status = 0) {
    nvme::completion_entry& entry = rings_.cq[posted_ % rings_.cq_entries];
    const u32 phase = 1 - (posted_ / rings_.cq_entries & 1);
    system_ref<u32>(entry.queue).store(head_ | static_cast<u32>(rings_.id) << 16, relaxed);
    system_ref<u32>(entry.outcome).store(nvme::make_outcome(command_id, phase, status), release);
    ++posted_;
  }

  queue_rings const& rings() const { return rings_; }

  std::vector<nvme::submission_entry> fetched;
  std::function<void()> on_attach, on_detach;  ///< called first; may throw
  std::function<bool(u16)> on_abort;           ///< what is answered
  bool has_failed = false;                     ///< it answers its admin queue no more
  std::vector<u16> aborts;                     ///< identifiers that were to be aborted
  u64 polls = 0;

 private:
  script on_poll_;
  std::mutex mutex_;
  queue_rings rings_;
  u32 head_ = 0;
  u32 posted_ = 0;
};

/// Fetches everything and completes it at once.
inline void serve_all(step_controller& c) {
  while (auto const* command = c.fetch()) c.post(command->command_id);
}

}  // namespace penstock::test
