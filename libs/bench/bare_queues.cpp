#include "libs/bench/bare_queues.hpp"

#include "penstock/host/error.hpp"

namespace penstock::bench {
namespace {

constexpr u32 doorbell_words = 64;  // two cache lines apart

void poll_controller(void* owner, u16 id) { static_cast<controller*>(owner)->poll(id); }

void check(bare_options const& options, controller_limits const& limits) {
  const auto refuse = [](std::string const& problem) { throw_bad_input("open", "bare queues", problem); };
  if (options.queues == 0 || u64{options.first_queue_id} + options.queues - 1 > limits.queues) {
    refuse(std::to_string(options.queues) + " queues: the controller has " + std::to_string(limits.queues));
  }
  if (!is_power_of_two(options.entries) || options.entries < 2 || options.entries > limits.queue_entries) {
    refuse("rings of " + std::to_string(options.entries) + " entries: choose a power of two from 2 to " +
           std::to_string(limits.queue_entries));
  }
  if (options.commands == 0 || options.commands >= options.entries) {
    refuse(std::to_string(options.commands) + " commands in flight on a ring of " + std::to_string(options.entries) +
           " entries: choose 1 to " + std::to_string(options.entries - 1));
  }
  if (options.block_bytes > limits.transfer_bytes) {
    refuse("commands of " + std::to_string(options.block_bytes) + " bytes: the controller takes at most " +
           std::to_string(limits.transfer_bytes));
  }
  if (!limits.reaches_local && options.data == memory_kind::local && options.rings == memory_kind::local) {
    refuse("this controller reaches host memory only: put rings and data there");
  }
}

}  // namespace

bare_queues::bare_queues(executor& on, controller& owner, bare_options const& options) : controller_(owner) {
  check(options, owner.limits());
  memory_resource& memory = on.memory();
  const u64 all = u64{options.queues} * options.commands;
  sq_ = {memory, options.rings, u64{options.queues} * options.entries};
  cq_ = {memory, options.rings, u64{options.queues} * options.entries};
  doorbells_ = {memory, options.rings, u64{options.queues} * doorbell_words};
  positions_ = {memory, memory_kind::local, options.queues};
  // A PRP list is made for blocks that begin with a page, whatever the allocator thinks.
  data_ = {memory, options.data, (all * options.block_bytes + nvme::page_bytes) / sizeof(u64)};
  base_ = round_up(reinterpret_cast<u64>(data_.data()), nvme::page_bytes);
  owner.add_buffer(data_.data(), data_.bytes());
  write_lists(memory, options, all);
  std::vector<bare_queue_view> table;
  for (u32 q = 0; q < options.queues; ++q) {
    bare_queue_view view;
    view.sq = sq_.data() + u64{q} * options.entries;
    view.cq = cq_.data() + u64{q} * options.entries;
    view.sq_doorbell = doorbells_.data() + u64{q} * doorbell_words;
    view.cq_doorbell = view.sq_doorbell + doorbell_words / 2;
    view.position = positions_.data() + q;
    view.data = base_ + u64{q} * options.commands * options.block_bytes;
    view.lists = reinterpret_cast<u64>(lists_.data()) + u64{q} * options.commands * prp_list_stride;
    view.entries = options.entries;
    view.block_bytes = options.block_bytes;
    view.namespace_id = options.namespace_id;
    view.number = q;
    view.id = static_cast<u16>(options.first_queue_id + q);
    if (options.poll_in_place) {
      view.poll = poll_controller;
      view.poll_target = &owner;
    }
    table.push_back(view);
  }
  table_ = {memory, memory_kind::local, table.size()};
  table_.write(table);
  try {
    for (auto const& view : table) {
      owner.attach({view.id, options.entries, options.entries, view.sq, view.cq, view.sq_doorbell, view.cq_doorbell});
      attached_.push_back(view.id);
    }
  } catch (error const&) {
    detach();
    throw;
  }
}

bare_queues::~bare_queues() { detach(); }

void bare_queues::detach() noexcept {
  try {
    for (const u16 id : attached_) controller_.detach(id);
  } catch (error const&) {
    // Who serves it does not come back, and may still write what it knows.
    sq_.leak();
    cq_.leak();
    doorbells_.leak();
    data_.leak();
    lists_.leak();
  }
}

u64 bare_queues::bytes(bare_options const& options) {
  return u64{options.queues} * options.commands * options.block_bytes + u64{options.queues} * options.entries * 80;
}

// Blocks are aligned to their own size up to a page, so all lists are made once.
void bare_queues::write_lists(memory_resource& memory, bare_options const& options, u64 count) {
  if (nvme::prp_list_entries(0, options.block_bytes) == 0) return;
  constexpr u64 words_per_list = prp_list_stride / sizeof(u64);
  std::vector<u64> lists(count * words_per_list);
  for (u64 k = 0; k < count; ++k) {
    const u64 address = base_ + k * options.block_bytes;
    nvme::write_prp_list(lists.data() + k * words_per_list, address, options.block_bytes);
  }
  lists_ = {memory, options.data, lists.size()};
  lists_.write(lists);
}

}  // namespace penstock::bench
