#include "penstock/controller/file_folder.hpp"

#include "command_decoder.hpp"
#include "file_space.hpp"
#include "queue_table.hpp"
#include "ring_server.hpp"

#include "penstock/nvme/prp.hpp"

#include <array>

namespace penstock {
namespace controllers {

// Not in an anonymous namespace: `state`, which has external linkage, has a member of this type.
struct record_memory {
  u64 begin = 0, bytes = 0;

  /// The record at an address that a command gave; nullptr: there is none.
  file_call* at(u64 address) const {
    const bool inside = address >= begin && address - begin < bytes && (address - begin) % sizeof(file_call) == 0;
    return inside ? reinterpret_cast<file_call*>(address) : nullptr;
  }
};

namespace {

constexpr u32 max_queues = 64, max_entries = 4096;

class call_queue final : public served_queue {
 public:
  call_queue(queue_rings const& rings, std::shared_ptr<file_space> files, record_memory records)
      : ring_(rings), files_(std::move(files)), records_(records) {}

  bool serve() override {
    bool moved = ring_.congested() && ring_.drain();
    std::array<file_call*, calls_per_pass> calls;
    std::array<u16, calls_per_pass> ids;
    u32 count = 0;
    nvme::submission_entry command;
    while (count < calls_per_pass && !ring_.congested() && ring_.fetch(command)) {
      moved = true;
      const u16 refusal = call_of(command, calls[count]);
      if (refusal != nvme::code::success) {
        ring_.complete(command.command_id, refusal);
      } else {
        ids[count++] = command.command_id;
      }
    }
    if (count == 0) files_->close_unused();
    files_->answer({calls.data(), count});
    for (u32 k = 0; k < count; ++k) ring_.complete(ids[k], nvme::code::success);
    return moved;
  }
  bool quiesce(u64) override { return true; }

 private:
  static constexpr u32 calls_per_pass = 16;  // each may take as long as a disk

  u16 call_of(nvme::submission_entry const& command, file_call*& call) const {
    if (command.opcode != call_controller::opcode) return nvme::code::invalid_opcode;
    call = records_.at(command.prp1);
    return call == nullptr ? nvme::code::invalid_field : nvme::code::success;
  }

  ring_server ring_;
  std::shared_ptr<file_space> files_;
  record_memory records_;
};

}  // namespace
}  // namespace controllers

using namespace controllers;

struct call_controller::state {
  state(file_folder const& folder, u32 threads) : files(folder.space()), table(max_queues, threads) {}

  std::shared_ptr<file_space> files;
  record_memory records;
  queue_table table;  ///< last: its threads use the others
};

call_controller::call_controller(file_folder const& folder, u32 threads) : state_(std::make_unique<state>(folder, threads)) {}

call_controller::~call_controller() = default;

void call_controller::attach(queue_rings const& rings) {
  check_rings(rings, limits());
  state_->table.attach(rings.id, std::make_shared<call_queue>(rings, state_->files, state_->records));
}

void call_controller::detach(u16 queue) { state_->table.detach(queue); }

void call_controller::poll(u16 queue) { state_->table.poll(queue); }

void call_controller::add_buffer(void* memory, u64 bytes) { state_->records = {reinterpret_cast<u64>(memory), bytes}; }

controller_limits call_controller::limits() const {
  controller_limits limits{max_queues, max_entries, nvme::page_bytes};
  limits.is_polled = !state_->table.has_threads();
  return limits;
}

file_folder::file_folder(std::string const& root, bool writable, u64 bytes, u32 max_files, u32 shares)
    : space_(std::make_shared<file_space>(root, writable, bytes, max_files, shares)) {}

u32 file_folder::open_files() const { return space_->open_files(); }

int file_folder::open_to_read(std::string const& path) const { return space_->open_to_read(path); }

u64 file_folder::calls() const { return space_->calls(); }

u64 file_folder::line_space_bytes() const { return space_->bytes(); }

void file_folder::finalize_sizes(std::span<u64 const> sizes) const { space_->finalize_sizes(sizes); }

u64 file_folder::versions() const { return space_->versions(); }

}  // namespace penstock
