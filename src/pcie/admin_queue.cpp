#include "admin_queue.hpp"

#include "penstock/core/atomic.hpp"
#include "penstock/core/backoff.hpp"

#include <atomic>

namespace penstock::pcie {

admin_queue::admin_queue(pci_function& function, controller_registers& registers, u64 timeout_ns)
    : registers_(registers), timeout_ns_(timeout_ns), sq_(function.memory(), memory_kind::shared, entries),
      cq_(function.memory(), memory_kind::shared, entries) {}

void admin_queue::start_over() {
  const std::lock_guard lock(mutex_);
  for (u32 k = 0; k < entries; ++k) {
    cq_.data()[k] = {};
    call& each = calls_[k];
    // Who waits for it takes the answer and frees it; nobody waits for the others.
    if (each.now == phase::waiting) {
      each.answer = {make_status(failure::resetting), 0};
      each.now = phase::answered;
    } else if (each.now != phase::answered) {
      each.now = phase::free;
    }
  }
  tail_ = head_ = 0;
  phase_ = 1;
  failed_ = false;
  mirrors_[0] = mirrors_[1] = nullptr;
}

void admin_queue::mirror_doorbells(u32* submission, u32* completion) {
  const std::lock_guard lock(mutex_);
  mirrors_[0] = submission, mirrors_[1] = completion;
  if (submission != nullptr) std::atomic_ref<u32>(*submission).store(tail_, std::memory_order_release);
  if (completion != nullptr) std::atomic_ref<u32>(*completion).store(head_, std::memory_order_release);
}

void admin_queue::ring(bool completion, u32 value) {
  if (u32* const mirror = mirrors_[completion ? 1 : 0]; mirror != nullptr)
    std::atomic_ref<u32>(*mirror).store(value, std::memory_order_release);
  registers_.ring(0, completion, value);
}

// A slot of the ring is free when its command has been fetched, and one whose command is answered has been: with one entry kept
// free, as many commands may be in flight as there are identifiers but one.
std::optional<u16> admin_queue::submit(nvme::submission_entry command, phase as, u64 patience_ns) {
  u32 busy = 0;
  u16 id = entries;
  for (u16 k = 0; k < entries; ++k) {
    if (calls_[k].now != phase::free)
      ++busy;
    else if (id == entries)
      id = k;
  }
  if (failed_ || busy + 1 >= entries) return std::nullopt;
  command.command_id = id;
  calls_[id] = {as, now_ns() + (patience_ns != 0 ? patience_ns : timeout_ns_), {}};
  sq_.data()[tail_] = command;
  tail_ = (tail_ + 1) % entries;
  ++commands_;
  ring(false, tail_);
  return id;
}

std::optional<u16> admin_queue::start(nvme::submission_entry const& command, u64 patience_ns) {
  const std::lock_guard lock(mutex_);
  return submit(command, phase::waiting, patience_ns);
}

void admin_queue::harvest() {
  u32 moved = 0;
  for (; !failed_ && moved < entries; ++moved) {
    nvme::completion_entry& entry = cq_.data()[head_];
    const u32 outcome = system_ref<u32>(entry.outcome).load(acquire);
    if (nvme::phase_tag(outcome) != phase_) break;
    accept(outcome, system_ref<u32>(entry.result).load(relaxed), system_ref<u32>(entry.queue).load(relaxed));
    head_ = (head_ + 1) % entries;
    if (head_ == 0) phase_ ^= 1u;
  }
  if (moved != 0) ring(true, head_);
}

void admin_queue::accept(u32 outcome, u32 result, u32 queue) {
  const u16 id = nvme::command_id(outcome);
  if (id >= entries || queue >> 16 != 0 || calls_[id].now == phase::free || calls_[id].now == phase::answered) {
    ++strays_;
    failed_ = true;
    return;
  }
  call& each = calls_[id];
  const status ended = nvme::completion_status(outcome);
  if (each.now == phase::waiting) {
    each.answer = {ended, result};
    each.now = phase::answered;
    return;
  }
  each.now = phase::free;
  if (!ended.ok()) return;  // it takes fewer requests at once than it said: this one is not asked again
  events_.push_back({result});
  if (events_.size() > most_events) events_.pop_front();
  submit(nvme::admin_command(nvme::admin_opcode::asynchronous_event_request), phase::event, 0);
}

std::optional<admin_answer> admin_queue::take(u16 id) {
  const std::lock_guard lock(mutex_);
  harvest();
  call& mine = calls_[id];
  if (mine.now == phase::answered) {
    mine.now = phase::free;
    return mine.answer;
  }
  if (failed_) {
    mine.now = phase::free;  // nothing is harvested any more, until a new life
    return admin_answer{make_status(failure::controller_failed), 0};
  }
  if (now_ns() < mine.deadline_ns) return std::nullopt;
  mine.now = phase::free;
  failed_ = true;  // what a controller leaves unanswered in its admin queue, only a reset takes back
  return admin_answer{make_status(failure::deadline), 0};
}

admin_answer admin_queue::run(nvme::submission_entry const& command, u64 patience_ns) {
  const std::optional<u16> id = start(command, patience_ns);
  if (!id.has_value()) return {make_status(failure::controller_failed), 0};
  for (backoff wait(patience_ns != 0 ? patience_ns : timeout_ns_);;) {
    if (const auto answer = take(*id)) return *answer;
    wait.pause();  // `take` knows the deadline
  }
}

void admin_queue::request_events(u32 requests) {
  const std::lock_guard lock(mutex_);
  for (u32 k = 0; k < requests; ++k) {
    submit(nvme::admin_command(nvme::admin_opcode::asynchronous_event_request), phase::event, 0);
  }
}

std::optional<nvme::asynchronous_event> admin_queue::take_event() {
  const std::lock_guard lock(mutex_);
  harvest();
  if (events_.empty()) return std::nullopt;
  const nvme::asynchronous_event first = events_.front();
  events_.pop_front();
  return first;
}

void admin_queue::put_back(nvme::asynchronous_event event) {
  const std::lock_guard lock(mutex_);
  events_.push_front(event);
}

bool admin_queue::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

u64 admin_queue::commands() const {
  const std::lock_guard lock(mutex_);
  return commands_;
}

u64 admin_queue::strays() const {
  const std::lock_guard lock(mutex_);
  return strays_;
}

}  // namespace penstock::pcie
