#include "ring_server.hpp"

#include <cstring>

namespace penstock::controllers {

ring_server::ring_server(queue_rings const& rings, ring_mischief mischief) : rings_(rings), mischief_(mischief) {}

void ring_server::refuse(u32 value, u32& last_refused) {
  if (value == last_refused) return;
  last_refused = value;
  ++refused_;
}

bool ring_server::look_for_commands() {
  const u32 tail = system_ref<u32>(*rings_.sq_doorbell).load(acquire);  // the entries before it are written
  if (tail >= rings_.sq_entries) {
    refuse(tail, refused_tail_);
    return false;
  }
  sq_tail_ = tail;
  return sq_head_ != sq_tail_;
}

bool ring_server::fetch(nvme::submission_entry& command) {
  if (sq_head_ == sq_tail_ && !look_for_commands()) return false;
  command = rings_.sq[sq_head_];
  if (mischief_.poison_fetched) std::memset(static_cast<void*>(&rings_.sq[sq_head_]), 0xa5, sizeof command);
  if (++sq_head_ == rings_.sq_entries) sq_head_ = 0;
  return true;
}

bool ring_server::room() {
  const u32 next = cq_tail_ + 1 == rings_.cq_entries ? 0 : cq_tail_ + 1;
  if (next != cq_head_) return true;
  const u32 head = system_ref<u32>(*rings_.cq_doorbell).load(acquire);  // the host has read the entries before it
  const u32 entries = rings_.cq_entries;
  // The ring is full, so every head but the next one up to the tail frees something.
  if (head >= entries || (head + entries - cq_head_) % entries > (cq_tail_ + entries - cq_head_) % entries) {
    refuse(head, refused_head_);
    return false;
  }
  cq_head_ = head;
  return next != cq_head_;
}

void ring_server::post(waiting_completion const& completion) {
  nvme::completion_entry& entry = rings_.cq[cq_tail_];
  const u32 queue = sq_head_ | static_cast<u32>(rings_.id) << 16;
  if (mischief_.torn_completion) {
    system_ref<u32>(entry.result).store(~completion.result, relaxed);
    system_ref<u32>(entry.queue).store(~queue, relaxed);
  }
  system_ref<u32>(entry.result).store(completion.result, relaxed);
  system_ref<u32>(entry.reserved).store(0, relaxed);
  system_ref<u32>(entry.queue).store(queue, relaxed);
  system_ref<u32>(entry.outcome).store(nvme::make_outcome(completion.command_id, phase_, completion.status), release);
  if (++cq_tail_ == rings_.cq_entries) {
    cq_tail_ = 0;
    phase_ ^= 1u;
  }
}

void ring_server::complete(u16 command_id, u16 status, u32 result) {
  const waiting_completion completion{command_id, status, result};
  if (backlog_.empty() && room()) {
    post(completion);
  } else {
    backlog_.push_back(completion);
  }
}

bool ring_server::drain() {
  bool posted = false;
  while (!backlog_.empty() && room()) {
    post(backlog_.front());
    backlog_.pop_front();
    posted = true;
  }
  return posted;
}

}  // namespace penstock::controllers
