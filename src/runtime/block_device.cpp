#include "penstock/runtime/block_device.hpp"

#include "penstock/host/error.hpp"
#include "penstock/runtime/identify.hpp"

#include <algorithm>

namespace penstock {
namespace {

constexpr u32 cuda_queues = 32;
constexpr u64 most_request_bytes = 65536;  // what a request's PRP list holds

[[noreturn]] void refuse(u32 namespace_id, std::string const& problem) {
  throw_bad_input("open", "namespace " + std::to_string(namespace_id), problem);
}

}  // namespace

block_device::block_device(executor& on, controller& owner, u32 namespace_id, block_device_options const& options) : on_(on) {
  const namespace_facts facts = identify_namespace(owner, namespace_id);
  const u64 transfer = std::min(options.transfer_bytes, owner.limits().transfer_bytes);
  if (transfer > most_request_bytes || transfer < facts.block_bytes) {
    refuse(namespace_id, "transfers of " + std::to_string(transfer) + " bytes: choose from a block (" +
                             std::to_string(facts.block_bytes) + ") to " + std::to_string(most_request_bytes));
  }
  const bool cuda = on.kind() == executor_kind::cuda;
  queue_options queue;
  queue.depth = options.queue_depth;
  queue.first_ticket = options.first_ticket;
  queue.timeout_ns = options.timeout_ns;
  queue.rings = options.rings;
  queue.rings_on_host = cuda && options.rings == memory_kind::shared;
  queue.bounce_bytes = queue.rings_on_host ? static_cast<u32>(transfer) : 0;
  queue.poll_in_place = !cuda && options.poll_in_place;
  const u32 left = owner.limits().queues >= options.first_queue_id ? owner.limits().queues - options.first_queue_id + 1 : 1;
  const u32 count = options.queues != 0 ? options.queues : std::min(left, cuda ? cuda_queues : on.units());
  std::vector<queue_pair_view<result_sink>> table;
  for (u32 q = 0; q < count; ++q) {
    const u32 id = options.first_queue_id + q;
    if (id > 0xffff) refuse(namespace_id, std::to_string(count) + " queues: ask for fewer");
    queues_.push_back(std::make_unique<queue_pair<result_sink>>(on.memory(), owner, static_cast<u16>(id), queue));
    table.push_back(queues_.back()->view());
    table.back().index = static_cast<u16>(q);
  }
  table_ = {on.memory(), memory_kind::local, table.size()};
  table_.write(table);
  view_.queues = table_.data();
  view_.queues_count = count;
  view_.namespace_id = namespace_id;
  view_.block_shift = ceil_log2(facts.block_bytes);
  view_.most_blocks = static_cast<u32>(transfer / facts.block_bytes);
  const clear_limits clears = identify_clear_limits(owner, facts.block_bytes);
  view_.most_zero_blocks = clears.zero_blocks;
  view_.most_discard_blocks = clears.discard_blocks;
  view_.blocks = facts.blocks;
  if (options.read_barrier) make_barrier(owner, static_cast<u32>(facts.block_bytes), queue.rings_on_host);
}

block_device::~block_device() {
  bool all_let_go = true;
  for (auto const& queue : queues_) all_let_go &= queue->close();
  if (!all_let_go) barrier_data_.leak();  // which the device may still write
}

std::vector<queue_counts> block_device::queues() const {
  std::vector<queue_counts> all;
  all.reserve(queues_.size());
  for (auto const& q : queues_) all.push_back(q->counts());
  return all;
}

void block_device::make_barrier(controller const& owner, u32 block_bytes, bool rings_on_host) {
  // The device reads the memory that it guards by fetching a command, so commands must lie there.
  if (rings_on_host || owner.limits().rings_in_controller) {
    refuse(view_.namespace_id, std::string("a read barrier over submission rings ") +
                                   (rings_on_host ? "in host memory" : "in the controller's memory") +
                                   ": choose rings in the memory that data go to, or no barrier");
  }
  if (block_bytes > nvme::page_bytes) {
    refuse(view_.namespace_id, "a read barrier over blocks of " + std::to_string(block_bytes) + " bytes: it takes up to " +
                                   std::to_string(nvme::page_bytes));
  }
  barrier_ = {on_.memory(), memory_kind::local, 1};
  barrier_data_ = {on_.memory(), memory_kind::local, block_bytes};
  view_.barrier = barrier_.data();
  read_barrier fresh;
  fresh.command = nvme::transfer_command(nvme::opcode::read, view_.namespace_id, lba{0}, 1);
  fresh.address = reinterpret_cast<u64>(barrier_data_.data());
  fresh.bytes = static_cast<u32>(barrier_data_.size());
  barrier_.write({&fresh, 1});
}

u64 block_device::barriers() const {
  if (barrier_.size() == 0) return 0;
  read_barrier now;
  barrier_.read({&now, 1});
  return now.begun;
}

/// A barrier's command that was left has its result by that, like all of its queue's, and so has its lock (read_barrier.hpp).
recovery block_device::recover(recover_scope which) { return recover_queues(on_, queues_, which); }

}  // namespace penstock
