// One drive of a model_server: its options as the body sees them, and its queues by identifier.
#include "model_server_state.hpp"
#include "served_queue_body.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {

using namespace controllers;

namespace {

constexpr u64 largest_drive_transfer = u64{64} << 20;  // the bytes of a batch of 32 fit 32 bits

[[noreturn]] void refuse_drive(std::string const& problem) { throw_bad_input("add", "a modelled drive", problem); }

void check_options(model_drive_options const& options) {
  if (options.max_queues == 0 || options.max_queues > 0xffff || options.max_queue_entries < 2 ||
      options.max_queue_entries > 0x10000) {
    refuse_drive("its limits allow no queue: ask for 1 to 65535 queues of 2 to 65536 entries");
  }
  if (options.transfer_bytes < 4096 || options.transfer_bytes > largest_drive_transfer) {
    refuse_drive("transfer_bytes " + std::to_string(options.transfer_bytes) + ": ask for 4096 to " +
                 std::to_string(largest_drive_transfer));
  }
  drive_timing const& timing = options.timing;
  for (const double iops : {timing.read_iops_512, timing.read_iops_4k, timing.write_iops_512, timing.write_iops_4k}) {
    if (!(iops >= 0)) refuse_drive("a limit of " + std::to_string(iops) + " commands/s: ask for 0 (none) or more");
  }
  check_fault_plan(options.faults);
  if (options.faults.error_codes.size() > most_error_codes) {
    refuse_drive("more than " + std::to_string(most_error_codes) + " error codes: name fewer");
  }
}

command_cost cost_of(double iops_512, double iops_4k) {
  const double small = iops_512 > 0 ? iops_512 : iops_4k, page = iops_4k > 0 ? iops_4k : iops_512;
  if (small == 0) return {};
  return {static_cast<u64>(std::llround(1e9 * ticks_per_ns / small)),
          static_cast<u64>(std::llround(1e9 * ticks_per_ns / page))};
}

/// Commands that start `least` apart are never more at once than fit a service time: units that are as many do not show.
drive_pace pace_of(drive_timing const& timing) {
  drive_pace pace{timing.service_time_ns * ticks_per_ns, timing.units, cost_of(timing.read_iops_512, timing.read_iops_4k),
                  cost_of(timing.write_iops_512, timing.write_iops_4k), timing.duplex};
  const u64 least = std::min({pace.read_cost.small, pace.read_cost.page, pace.write_cost.small, pace.write_cost.page});
  if (least * pace.units >= pace.service) pace.units = 0;
  return pace;
}

bool has_faults(fault_plan const& plan) {
  return plan.error > 0 || plan.delay > 0 || plan.drop > 0 || plan.reorder || plan.duplicate > 0 || plan.late > 0 ||
         plan.unknown_identifier > 0 || plan.poison_fetched || plan.torn_completion;
}

void fill_faults(drive_record& record, fault_plan const& plan) {
  record.faults = shares_of(plan);
  std::copy(plan.error_codes.begin(), plan.error_codes.end(), record.error_codes);
  record.delay = plan.delay_ns * ticks_per_ns;
  record.late = plan.late_ns * ticks_per_ns;
  record.completions_per_command = 1 + (plan.duplicate > 0 ? 1 : 0) + (plan.unknown_identifier > 0 ? 1 : 0);
  record.reorder = plan.reorder;
  record.poison_fetched = plan.poison_fetched;
  record.torn_completion = plan.torn_completion;
  record.faulty = has_faults(plan);
}

void add(served_counts& sum, served_counts const& more) {
  auto* to = reinterpret_cast<u64*>(&sum);
  auto const* from = reinterpret_cast<u64 const*>(&more);
  for (u64 k = 0; k < sizeof sum / sizeof(u64); ++k) to[k] += from[k];
}

model_options admin_options(model_drive_options const& options) {
  model_options admin;
  admin.max_queues = options.max_queues;
  admin.max_queue_entries = options.max_queue_entries;
  admin.transfer_bytes = options.transfer_bytes;
  return admin;
}

}  // namespace

model_drive::state::state(model_server::state& server_, model_drive_options const& options_)
    : server(server_), options(options_), limits{options_.max_queues, options_.max_queue_entries, options_.transfer_bytes},
      admin(admin_options(options_)), slot_of(u64{options_.max_queues} + 1), served(server_.memory, memory_kind::local, 1),
      units(server_.memory, memory_kind::local, u64{options_.timing.units} * (options_.timing.duplex ? 2 : 1)) {
  drive_timing const& timing = options.timing;
  record.pace = pace_of(timing);
  record.pace.transfer_bytes = options.transfer_bytes;
  record.unit_slots = units.data();
  fill_faults(record, options.faults);
  record.faults.error_codes = served.data()->error_codes;
  record.plain = !timing.limits_anything() && !record.faulty && server.view.link_ticks_per_mib == 0;
}

served_counts model_drive::state::sum() const {
  served_counts result = retired;
  add(result, server.counts_of(&served.data()->counts));
  for (auto const& slot : slot_of) {
    const u32 index = slot.load(relaxed);
    if (index != 0) add(result, server.counts_of(&server.queues.data()[index - 1].counts));
  }
  return result;
}

model_drive::model_drive(std::unique_ptr<state> made) : state_(std::move(made)) {}
model_drive::~model_drive() = default;

model_drive& model_server::add_drive(model_drive_options const& options) {
  check_options(options);
  if (running()) refuse_drive("the server runs: add drives before");
  auto made = std::make_unique<model_drive::state>(*state_, options);
  state_->drives.push_back(std::unique_ptr<model_drive>(new model_drive(std::move(made))));
  return *state_->drives.back();
}

u32 model_drive::add_namespace(void* memory, u64 bytes, u32 block_bytes) {
  check_shape("modelled memory", bytes, block_bytes, state_->limits.transfer_bytes);
  if (bytes % block_bytes != 0 || reinterpret_cast<u64>(memory) % 16 != 0) {
    throw_bad_input("open namespace", "modelled memory",
                    std::to_string(bytes) + " bytes: give whole blocks of " + std::to_string(block_bytes) +
                        ", at an address that is a multiple of 16");
  }
  drive_record& record = state_->record;
  if (record.space_count == most_namespaces || state_->published) {
    throw_bad_input("open namespace", "modelled memory",
                    "a drive takes " + std::to_string(most_namespaces) + " of them, before its first queue");
  }
  record.spaces[record.space_count] = {reinterpret_cast<u64>(memory), bytes, ceil_log2(block_bytes), 0};
  state_->admin.add_namespace({static_cast<std::byte*>(memory), bytes}, block_bytes);
  return ++record.space_count;
}

void model_drive::attach(queue_rings const& rings) {
  state& s = *state_;
  check_rings(rings, s.limits);
  if (rings.id == 0) return s.admin.attach(rings);
  const std::string object = "queue " + std::to_string(rings.id);
  if (s.server.on_gpu() && s.server.running)
    throw_bad_input("attach", object, "the server runs on the GPU: attach before start");
  if (rings.cq_entries <= s.record.completions_per_command) {
    throw_bad_input("attach", object,
                    "the fault plan posts up to " + std::to_string(s.record.completions_per_command) +
                        " completions for a command: ask for a completion ring of more entries");
  }
  const std::lock_guard guard(s.mutex);
  if (s.slot_of[rings.id] != 0) throw_bad_input("attach", object, "the identifier is in use: detach that queue first");
  if (!s.published) s.server.memory.write(s.served.data(), &s.record, sizeof s.record);
  s.published = true;
  queue_fields fields;
  queue_facts& facts = fields.facts;
  facts.rings = rings;
  facts.drive = s.served.data();
  facts.completions_per_command = s.record.completions_per_command;
  facts.within_gpu = s.server.runner->is_local(rings.cq);
  facts.plain = s.record.plain;
  facts.faulty = s.record.faulty;
  facts.poison_fetched = s.record.poison_fetched;
  facts.torn_completion = s.record.torn_completion;
  // What the host may have given up and asked again, and then some.
  if (!s.record.plain) facts.waiting_capacity = std::max(64u, 1u << ceil_log2(2 * u64{rings.sq_entries}));
  s.slot_of[rings.id].store(s.server.take_slot(fields) + 1, release);
}

void model_drive::detach(u16 queue) {
  state& s = *state_;
  if (queue == 0) return s.admin.detach(0);
  if (s.server.on_gpu()) s.server.stop();
  const std::lock_guard guard(s.mutex);
  const u32 slot = queue < s.slot_of.size() ? s.slot_of[queue].exchange(0, acq_rel) : 0;
  if (slot == 0) throw_bad_input("detach", "queue " + std::to_string(queue), "no such queue is attached: attach it first");
  add(s.retired, s.server.give_back_slot(slot - 1));
}

void model_drive::poll(u16 queue) {
  state& s = *state_;
  if (queue == 0) return s.admin.poll(0);
  if (s.server.on_gpu() || !s.server.served_by_polls() || queue >= s.slot_of.size()) return;
  const u32 slot = s.slot_of[queue].load(acquire);
  if (slot == 0) return;
  fine_clock clock(1, 0);
  serve_queue(lone_thread{}, s.server.view, s.server.queues.data()[slot - 1], clock);
  // Lateness is the waiter's here, which slept between two polls: a lead learnt from it would end the next commands too early.
  device_ref<u64>(s.served.data()->lead).store(0, relaxed);
}

bool model_drive::looks_within(void const* rings) const { return state_->server.runner->is_local(rings); }

controller_limits model_drive::limits() const {
  controller_limits limits = state_->limits;
  limits.reaches_local = true;
  return limits;
}

// While a kernel runs, copies from its memory would do, but they are calls to CUDA: what it told last stands.
served_counts model_drive::state::told() {
  const std::lock_guard guard(mutex);
  if (!(server.on_gpu() && server.running)) {
    last_told = sum();
    last_most_in_flight = server.word_of(&served.data()->most_in_flight);
  }
  return last_told;
}

model_counts model_drive::counts() const {
  const served_counts from = state_->told();
  model_counts result;
  result.fetched = from.fetched;
  result.completed = from.completed;
  result.errors = from.errors;
  result.delays = from.delays;
  result.drops = from.drops;
  result.duplicates = from.duplicates;
  result.lates = from.lates;
  result.unknown_identifiers = from.unknown_identifiers;
  result.refused_doorbells = from.refused_doorbells;
  return result;
}

model_traffic model_drive::traffic() const {
  const served_counts from = state_->told();
  model_traffic result;
  result.reads = from.reads;
  result.writes = from.writes;
  result.bytes_read = from.bytes_read;
  result.bytes_written = from.bytes_written;
  result.residence_ns = from.residence;
  result.busy_ns = from.busy;
  const std::lock_guard guard(state_->mutex);
  result.most_in_flight = state_->last_most_in_flight;
  return result;
}

}  // namespace penstock
