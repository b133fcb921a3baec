// The admin queue pair of a controller: few commands, each with a deadline, and the requests for asynchronous events that stay
// with the controller. It believes nothing: an identifier that was not asked for, or another queue's, fails the controller.
#pragma once

#include "controller_registers.hpp"

#include "penstock/nvme/admin.hpp"

#include <array>
#include <deque>
#include <mutex>
#include <optional>

namespace penstock::pcie {

struct admin_answer {
  status outcome;
  u32 result = 0;  ///< dword 0
};

/// Thread-safe.
class admin_queue {
 public:
  admin_queue(pci_function& function, controller_registers& registers, u64 timeout_ns);

  static constexpr u32 entries = 32;
  u64 submission_ring() const { return reinterpret_cast<u64>(sq_.data()); }
  u64 completion_ring() const { return reinterpret_cast<u64>(cq_.data()); }

  /// All that was in flight ends with failure::resetting; both rings are as on the first day. REQUIRES: the controller is
  /// disabled.
  void start_over();

  /// From now on each doorbell is stored there, too, before its register is written: a controller that was told of doorbells in
  /// memory may take those of this queue from there, and hosts may not leave the register out. Nothing with null pointers, and
  /// after `start_over`.
  void mirror_doorbells(u32* submission, u32* completion);

  /// Runs a command. failure::deadline if it is not answered in time, failure::controller_failed if the controller broke the
  /// protocol. `patience_ns` 0: the time of any admin command. REQUIRES: with the requests for events, fewer than `entries` - 1
  /// are in flight.
  admin_answer run(nvme::submission_entry const& command, u64 patience_ns = 0);

  /// The two halves of `run`: nothing where no command can be taken now, or the controller has failed.
  std::optional<u16> start(nvme::submission_entry const& command, u64 patience_ns = 0);
  /// Its answer, once it is there or its time is up; never waits. The identifier is over then.
  std::optional<admin_answer> take(u16 id);

  /// Leaves `requests` for events with the controller, and again as they are answered.
  void request_events(u32 requests);
  std::optional<nvme::asynchronous_event> take_event();
  /// An event that was taken and not dealt with: it is the next again.
  void put_back(nvme::asynchronous_event event);

  /// A controller that broke the protocol, or left a command without an answer.
  bool failed() const;
  u64 commands() const;
  u64 strays() const;

 private:
  enum class phase { free, waiting, answered, event };
  struct call {
    phase now = phase::free;
    u64 deadline_ns = 0;
    admin_answer answer;
  };

  static constexpr u64 most_events = 64;  ///< that wait to be taken; the oldest go

  std::optional<u16> submit(nvme::submission_entry command, phase as, u64 patience_ns);
  void harvest();
  void ring(bool completion, u32 value);
  void accept(u32 outcome, u32 result, u32 queue);

  controller_registers& registers_;
  u64 timeout_ns_;
  buffer<nvme::submission_entry> sq_;
  buffer<nvme::completion_entry> cq_;
  mutable std::mutex mutex_;  ///< guards all below
  std::array<call, entries> calls_;
  std::deque<nvme::asynchronous_event> events_;
  u32 tail_ = 0;
  u32 head_ = 0;
  u32 phase_ = 1;
  u32* mirrors_[2] = {};  ///< of the submission and the completion doorbell
  u64 commands_ = 0;
  u64 strays_ = 0;
  bool failed_ = false;
};

}  // namespace penstock::pcie
