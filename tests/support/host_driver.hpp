// The host's half of a queue pair, for tests of controllers: one thread, one command at a time or many in flight, every wait
// with a deadline. It believes nothing: phases, identifiers and the submission queue head are checked.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/nvme/command.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace penstock::test_support {

/// Where page_memory comes from: a device's own while one is under test; null: the heap, so that sanitizers watch its ends.
inline memory_resource*& memory_under_test() {
  static memory_resource* memory = nullptr;
  return memory;
}

/// Zeroed memory aligned to a page.
class page_memory {
 public:
  explicit page_memory(u64 bytes)
      : from_(memory_under_test()), bytes_(round_up(bytes, 4096)),
        data_(from_ != nullptr ? from_->allocate(memory_kind::shared, bytes_) : std::aligned_alloc(4096, bytes_)) {
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, 0, bytes_);
  }
  page_memory(page_memory const&) = delete;
  page_memory& operator=(page_memory const&) = delete;
  ~page_memory() { from_ != nullptr ? from_->deallocate(memory_kind::shared, data_, bytes_) : std::free(data_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  u64 bytes() const { return bytes_; }
  u64 address() const { return reinterpret_cast<u64>(data_); }

 private:
  memory_resource* from_;
  u64 bytes_;
  void* data_;
};

struct completion {
  u16 command_id = 0;
  u16 status = 0;  ///< type << 8 | code
  u32 result = 0;
};

class host_queue {
 public:
  /// A disk that others use, too, has taken twenty seconds for a write.
  static constexpr u64 patience_ns = 100 * one_second_ns;

  host_queue(controller& far_side, u16 id, u32 sq_entries, u32 cq_entries)
      : far_side_(far_side), sq_(u64{sq_entries} * 64), cq_(u64{cq_entries} * 16), doorbells_(4096) {
    rings_.id = id;
    rings_.sq_entries = sq_entries;
    rings_.cq_entries = cq_entries;
    rings_.sq = reinterpret_cast<nvme::submission_entry*>(sq_.data());
    rings_.cq = reinterpret_cast<nvme::completion_entry*>(cq_.data());
    rings_.sq_doorbell = reinterpret_cast<u32*>(doorbells_.data());
    rings_.cq_doorbell = reinterpret_cast<u32*>(doorbells_.data() + 64);
    far_side_.attach(rings_);
    attached_ = true;
  }
  host_queue(host_queue const&) = delete;
  host_queue& operator=(host_queue const&) = delete;
  ~host_queue() {
    if (attached_) far_side_.detach(rings_.id);
  }

  void detach() {
    attached_ = false;
    far_side_.detach(rings_.id);
  }

  queue_rings const& rings() const { return rings_; }
  u64 in_flight() const { return in_flight_.size(); }
  u64 strays() const { return strays_; }
  std::vector<u16> const& stray_ids() const { return stray_ids_; }
  u64 harvested() const { return harvested_; }
  void poll() { far_side_.poll(rings_.id); }

  /// Entries that the controller is known to have fetched are free again; one is kept free.
  bool has_room() const { return next(sq_tail_) != sq_head_; }

  /// Writes a command without telling the controller. REQUIRES: has_room().
  u16 write_command(nvme::submission_entry command) {
    command.command_id = new_id();
    rings_.sq[sq_tail_] = command;
    sq_tail_ = next(sq_tail_);
    in_flight_.insert(command.command_id);
    return command.command_id;
  }

  void ring() { system_ref<u32>(*rings_.sq_doorbell).store(sq_tail_, release); }

  u16 submit(nvme::submission_entry const& command) {
    const u16 id = write_command(command);
    ring();
    return id;
  }

  /// The next completion, if there is one. `tell` false: the controller is not told that its entry is free.
  std::optional<completion> harvest(bool tell = true) {
    nvme::completion_entry& entry = rings_.cq[cq_head_];
    const u32 outcome = system_ref<u32>(entry.outcome).load(acquire);
    if (nvme::phase_tag(outcome) != phase_) return std::nullopt;
    const u32 queue = system_ref<u32>(entry.queue).load(relaxed);
    if (queue >> 16 != rings_.id) throw std::logic_error("completion names another queue");
    if ((queue & 0xffffu) >= rings_.sq_entries) throw std::logic_error("submission queue head outside of the ring");
    sq_head_ = queue & 0xffffu;
    const completion result{nvme::command_id(outcome), static_cast<u16>(nvme::status_bits(outcome) & 0x7ffu),
                            system_ref<u32>(entry.result).load(relaxed)};
    if (++cq_head_ == rings_.cq_entries) {
      cq_head_ = 0;
      phase_ ^= 1u;
    }
    ++harvested_;
    if (in_flight_.erase(result.command_id) == 0) {
      ++strays_;
      stray_ids_.push_back(result.command_id);
    } else {
      done_[result.command_id] = result.status;
    }
    if (tell) tell_head();
    return result;
  }

  void tell_head() { system_ref<u32>(*rings_.cq_doorbell).store(cq_head_, release); }

  /// Polls and harvests until `enough()`; false at the deadline.
  template <class Enough>
  bool drive_until(Enough enough, u64 timeout_ns = patience_ns) {
    backoff wait(timeout_ns);
    for (;;) {
      poll();
      while (harvest()) {}
      if (enough()) return true;
      if (!wait.pause()) return enough();
    }
  }

  bool drain(u64 timeout_ns = patience_ns) {
    return drive_until([this] { return in_flight_.empty(); }, timeout_ns);
  }

  /// The status of a command that was submitted. Throws when the controller does not answer.
  u16 wait(u16 id) {
    if (!drive_until([&] { return done_.contains(id); })) throw std::runtime_error("no completion before the deadline");
    const u16 status = done_[id];
    done_.erase(id);
    return status;
  }

  u16 run(nvme::submission_entry const& command) { return wait(submit(command)); }

  /// Submits, waiting for room if need be.
  u16 submit_when_possible(nvme::submission_entry const& command) {
    if (!drive_until([this] { return has_room() && in_flight_.size() + 1 < rings_.sq_entries; })) {
      throw std::runtime_error("no room in the submission queue before the deadline");
    }
    return submit(command);
  }

  /// Statuses of what has been harvested since the last call.
  std::map<u16, u16> take_done() { return std::exchange(done_, {}); }

 private:
  u32 next(u32 position) const { return position + 1 == rings_.sq_entries ? 0 : position + 1; }

  u16 new_id() {
    while (in_flight_.contains(next_id_) || done_.contains(next_id_)) next_id_ = static_cast<u16>((next_id_ + 1) & 0x3fff);
    const u16 id = next_id_;
    next_id_ = static_cast<u16>((next_id_ + 1) & 0x3fff);
    return id;
  }

  controller& far_side_;
  page_memory sq_, cq_, doorbells_;
  queue_rings rings_;
  bool attached_ = false;
  u32 sq_tail_ = 0;
  u32 sq_head_ = 0;
  u32 cq_head_ = 0;
  u32 phase_ = 1;
  u16 next_id_ = 0;
  u64 strays_ = 0;
  u64 harvested_ = 0;
  std::vector<u16> stray_ids_;
  std::set<u16> in_flight_;
  std::map<u16, u16> done_;
};

/// A buffer with its PRP list, and the commands that move it.
class data_buffer {
 public:
  explicit data_buffer(u64 bytes, u64 offset_in_page = 0)
      : bytes_(bytes), offset_(offset_in_page), memory_(bytes + offset_in_page), list_(4096) {
    nvme::write_prp_list(reinterpret_cast<u64*>(list_.data()), address(), bytes_);
  }

  std::byte* data() const { return memory_.data() + offset_; }
  u64 address() const { return memory_.address() + offset_; }
  u64 bytes() const { return bytes_; }
  page_memory const& memory() const { return memory_; }

  nvme::submission_entry command(nvme::opcode op, u32 name_space, u64 start, u64 block_bytes = 512) const {
    auto result = nvme::transfer_command(op, name_space, lba{start}, static_cast<u32>(bytes_ / block_bytes));
    nvme::set_data_pointer(result, address(), bytes_, list_.address());
    return result;
  }
  nvme::submission_entry read(u32 name_space, u64 start, u64 block_bytes = 512) const {
    return command(nvme::opcode::read, name_space, start, block_bytes);
  }
  nvme::submission_entry write(u32 name_space, u64 start, u64 block_bytes = 512) const {
    return command(nvme::opcode::write, name_space, start, block_bytes);
  }

 private:
  u64 bytes_;
  u64 offset_;
  page_memory memory_;
  page_memory list_;
};

}  // namespace penstock::test_support
