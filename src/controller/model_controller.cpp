#include "penstock/controller/model_controller.hpp"

#include "model_queue.hpp"

#include "penstock/host/error.hpp"

namespace penstock {
namespace {

using namespace controllers;

[[noreturn]] void refuse_options(std::string const& problem) { throw_bad_input("start", "modelled controller", problem); }

void check_options(model_options const& options) {
  if (options.max_queues == 0 || options.max_queues > 0xffff || options.max_queue_entries < 2) {
    refuse_options("its limits allow no queue: ask for 1 to 65535 queues of 2 entries or more");
  }
  if (options.parallelism == 0) refuse_options("parallelism 0: ask for 1 or more");
  if (options.transfer_bytes < 4096) {
    refuse_options("transfer_bytes " + std::to_string(options.transfer_bytes) + ": ask for 4096 or more");
  }
  check_fault_plan(options.faults);
}

}  // namespace

struct model_controller::state {
  explicit state(model_options const& options)
      : media(std::make_shared<model_media>(options)), table(options.max_queues, options.threads) {
    media->limits = {options.max_queues, options.max_queue_entries, options.transfer_bytes};
    media->limits.is_polled = options.threads == 0;
  }

  std::shared_ptr<model_media> media;
  queue_table table;  ///< last: its threads use the media
};

model_controller::model_controller(model_options const& options) {
  check_options(options);
  state_ = std::make_unique<state>(options);
}

model_controller::~model_controller() = default;

u32 model_controller::add_namespace(std::span<std::byte> memory, u32 block_bytes) {
  model_media& media = *state_->media;
  check_shape("modelled memory", memory.size(), block_bytes, media.limits.transfer_bytes);
  media.shapes.push_back({memory.size(), block_bytes, false});
  media.memory.push_back(memory.data());
  return static_cast<u32>(media.shapes.size());
}

void model_controller::attach(queue_rings const& rings) {
  check_rings(rings, state_->media->limits);
  state_->table.attach(rings.id, std::make_shared<model_queue>(rings, state_->media));
}

void model_controller::detach(u16 queue) { state_->table.detach(queue); }

bool model_controller::abort(u16 queue, u16 command_id, u64 patience_ns) {
  return !state_->media->dead.load(relaxed) && state_->table.abort(queue, command_id, patience_ns);
}

void model_controller::poll(u16 queue) { state_->table.poll(queue); }

void model_controller::add_buffer(void*, u64) {}

controller_limits model_controller::limits() const { return state_->media->limits; }

std::string model_controller::engine() const { return "model"; }

model_counts model_controller::counts() const {
  auto const& from = state_->media->counts;
  model_counts result;
  result.fetched = from.fetched.load(relaxed);
  result.completed = from.completed.load(relaxed);
  result.errors = from.errors.load(relaxed);
  result.delays = from.delays.load(relaxed);
  result.drops = from.drops.load(relaxed);
  result.duplicates = from.duplicates.load(relaxed);
  result.lates = from.lates.load(relaxed);
  result.unknown_identifiers = from.unknown_identifiers.load(relaxed);
  result.refused_doorbells = from.refused_doorbells.load(relaxed);
  result.aborted = from.aborted.load(relaxed);
  return result;
}

void model_controller::set_dead(bool dead) { state_->media->dead.store(dead, relaxed); }

}  // namespace penstock
