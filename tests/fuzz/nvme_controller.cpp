// A controller that means harm: registers, Identify data and completions as the input says, with some sense now and then so
// that the driver gets far. Whatever it does: no access outside of what it was given, no hang, and each command ends once.
#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include "src/pcie/dma_arena.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace penstock;

constexpr u64 arena_bytes = u64{4} << 20;
constexpr u32 most_queues = 4;
constexpr u64 patience_ns = 20'000;

/// The input's bytes, and when they are used up, others that follow from them.
class tape {
 public:
  tape(std::uint8_t const* data, std::size_t size) : data_(data), left_(size), random_(static_cast<u32>(size)) {}

  u32 byte() {
    if (left_ == 0) return random_() & 0xffu;
    --left_;
    const u32 value = *data_++;
    random_.seed(random_() ^ value);
    return value;
  }
  u32 word() { return byte() | byte() << 8 | byte() << 16 | byte() << 24; }
  /// Once in `n` times.
  bool once_in(u32 n) { return (byte() | byte() << 8) % n == 0; }

 private:
  std::uint8_t const* data_;
  std::size_t left_;
  std::minstd_rand random_;
};

std::byte* arena_memory() {
  static std::vector<std::byte> memory(arena_bytes + 4096);
  return reinterpret_cast<std::byte*>(round_up(reinterpret_cast<u64>(memory.data()), 4096));
}

class harmful_function final : public pci_function {
 public:
  explicit harmful_function(tape& from) : tape_(from), arena_({std::span(arena_memory(), arena_bytes)}, "the fuzzer") {}

  std::string name() const override { return "harm"; }
  u64 register_bytes() const override { return 0x2000; }
  memory_resource& memory() override { return arena_; }
  bool reaches(void const* address, u64 bytes) const override { return arena_.holds(address, bytes); }
  void reset() override {
    if (tape_.once_in(4)) throw error(error_kind::world, "reset harm: no");
    stop();
  }

  u32 read(u64 offset) override {
    if (tape_.once_in(1000)) return tape_.once_in(2) ? nvme::all_ones : tape_.word();
    switch (offset) {
      case nvme::at::capabilities: return 1u << 16 | (tape_.once_in(8) ? tape_.word() & 0xffffu : 63);
      case nvme::at::capabilities + 4: return 1u << 5 | (tape_.once_in(8) ? tape_.word() & 0xfu : 0);
      case nvme::at::configuration: return configuration_;
      case nvme::at::status: return nvme::controller_status::shutdown_complete | (configuration_ & 1u);
      default: return 0;
    }
  }

  void write(u64 offset, u32 value) override {
    if (offset == nvme::at::configuration) {
      configuration_ = value;
      if ((value & 1u) == 0) stop();
    }
    if (offset == nvme::at::admin_entries) queues_[0].entries = (value & 0xfffu) + 1;
    if (offset == nvme::at::admin_submission) queues_[0].sq = value;
    if (offset == nvme::at::admin_submission + 4) queues_[0].sq |= static_cast<u64>(value) << 32;
    if (offset == nvme::at::admin_completion) queues_[0].cq = value;
    if (offset == nvme::at::admin_completion + 4) queues_[0].cq |= static_cast<u64>(value) << 32;
    if (offset < nvme::at::doorbells || (configuration_ & 1u) == 0) return;
    const u64 index = (offset - nvme::at::doorbells) / 4;
    if (index % 2 == 0 && index / 2 <= most_queues) serve(index / 2, value);
  }

  u64 completions() const { return completions_; }

 private:
  struct queue {
    u64 sq = 0, cq = 0;
    u32 entries = 0, head = 0, tail = 0, phase = 1;
  };

  void stop() { queues_.fill({}); }

  void serve(u64 id, u32 tail) {
    queue& q = queues_[id];
    if (q.entries == 0 || q.sq == 0 || q.cq == 0 || tail >= q.entries) return;
    for (; q.head != tail && q.entries != 0; q.head = (q.head + 1) % std::max(1u, q.entries)) {
      const auto command = reinterpret_cast<nvme::submission_entry const*>(q.sq)[q.head];
      if (tape_.once_in(id == 0 ? 300 : 20)) continue;  // forgotten
      u32 result = 0;
      if (id == 0) result = obey(command);
      if (queues_[id].entries == 0) return;
      do post(q, id, command.command_id, result);
      while (tape_.once_in(id == 0 ? 300 : 8));
    }
  }

  void post(queue& q, u64 id, u16 command_id, u32 result) {
    const bool harm = tape_.once_in(id == 0 ? 300 : 4);
    nvme::completion_entry entry;
    entry.result = harm ? tape_.word() : result;
    entry.queue = harm ? tape_.word() : q.head | static_cast<u32>(id) << 16;
    entry.outcome = nvme::make_outcome(command_id, q.phase, 0);
    if (harm) {
      // Any identifier and status; most often of the phase that makes it be looked at.
      entry.outcome = tape_.once_in(2) ? entry.outcome ^ (1u << (tape_.byte() % 32)) : tape_.word();
      if (!tape_.once_in(4)) entry.outcome = (entry.outcome & ~(1u << 16)) | q.phase << 16;
    }
    std::memcpy(reinterpret_cast<nvme::completion_entry*>(q.cq) + q.tail, &entry, sizeof entry);
    if (++q.tail == q.entries) {
      q.tail = 0;
      q.phase ^= 1u;
    }
    ++completions_;
  }

  /// The admin commands that matter to it; dword 0 of the answer.
  u32 obey(nvme::submission_entry const& command) {
    const u64 id = command.dword10 & 0xffffu;
    switch (static_cast<nvme::admin_opcode>(command.opcode)) {
      case nvme::admin_opcode::create_completion_queue:
        if (id <= most_queues) queues_[id] = {0, command.prp1, (command.dword10 >> 16) + 1};
        return 0;
      case nvme::admin_opcode::create_submission_queue:
        if (id <= most_queues) queues_[id].sq = command.prp1;
        return 0;
      case nvme::admin_opcode::delete_submission_queue:
        if (id <= most_queues && id != 0) queues_[id].sq = 0;
        return 0;
      case nvme::admin_opcode::delete_completion_queue:
        if (id <= most_queues && id != 0) queues_[id] = {};
        return 0;
      case nvme::admin_opcode::set_features: return tape_.once_in(4) ? tape_.word() : (most_queues - 1) * 0x10001u;
      case nvme::admin_opcode::identify:
      case nvme::admin_opcode::get_log_page: return fill_page(command);
      default: return 0;
    }
  }

  u32 fill_page(nvme::submission_entry const& command) {
    auto* page = reinterpret_cast<std::byte*>(command.prp1);
    if (!arena_.holds(page, nvme::page_bytes)) std::abort();  // the driver points to memory that is not the device's
    std::memset(page, 0, nvme::page_bytes);
    const u32 what = command.dword10 & 0xffu;
    if (command.opcode == static_cast<u8>(nvme::admin_opcode::identify) && what == 0) {
      nvme::identify_namespace space;
      space.blocks = 1000;
      space.formats[0].block_shift = 9;
      std::memcpy(page, &space, sizeof space);
    }
    if (what == 1) page[516] = std::byte{1};  // NN
    if (what == 2) page[0] = std::byte{1};    // the first namespace
    while (tape_.once_in(3)) page[tape_.word() % nvme::page_bytes] = static_cast<std::byte>(tape_.byte());
    return 0;
  }

  tape& tape_;
  pcie::dma_arena arena_;
  u32 configuration_ = 0;
  std::array<queue, most_queues + 1> queues_{};
  u64 completions_ = 0;
};

void use(harmful_function& function, pcie_controller& drive) {
  constexpr u32 requests = 24;
  const auto on = open_cpu_executor(function.memory(), 1);
  block_device device(*on, drive, 1, {.queues = 2, .queue_depth = 16, .timeout_ns = patience_ns, .transfer_bytes = 512});
  buffer<block_request> request(on->memory(), memory_kind::local, requests);
  buffer<u8> data(on->memory(), memory_kind::local, requests * 512);
  const lone_thread g;
  for (u32 round = 0; round < 4; ++round) {
    for (u32 k = 0; k < requests; ++k) {
      submit_blocks(g, device.view(), nvme::opcode::read, true, request.data()[k], lba{k}, 1,
                    reinterpret_cast<u64>(data.data()) + k * 512);
    }
    // Whatever comes of it, something does: `wait_blocks` has a deadline, and a result word is written once.
    for (u32 k = 0; k < requests; ++k) wait_blocks(g, device.view(), true, request.data()[k]);
    drive.take_event();
    device.recover();
  }
  for (queue_counts const& q : device.queues()) {
    if (q.commands != q.completions - q.strays + q.expired + q.failed + q.reset) std::abort();
  }
}

u64 all_completions = 0;

struct report {
  ~report() { std::printf("%llu completions\n", static_cast<unsigned long long>(all_completions)); }
} at_the_end;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  tape bytes(data, size);
  harmful_function function(bytes);
  try {
    pcie_controller drive(function, {.queues = most_queues, .admin_timeout_ns = patience_ns, .least_ready_ns = patience_ns});
    use(function, drive);
  } catch (error const& refused) {
    if (std::strlen(refused.what()) == 0) std::abort();
  }
  all_completions += function.completions();
  return 0;
}
