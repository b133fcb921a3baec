#include "penstock/pcie/pcie_controller.hpp"

#include "../controller/command_decoder.hpp"
#include "../controller/kept.hpp"
#include "admin_stand_in.hpp"
#include "pcie_controller_state.hpp"
#include "pcie_queue.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penstock {
namespace {

using namespace pcie;

constexpr u64 least_delete_ns = 100 * one_millisecond_ns;  ///< for a completion queue, which has nothing left to end

u64 left(backoff const& time) { return time.deadline_ns() - std::min(time.deadline_ns(), now_ns()); }

/// What of a log page is read: all of those that have one size, the newest entry of the others.
u32 log_bytes(u8 page) {
  switch (page) {
    case nvme::log_page::errors: return 64;
    case nvme::log_page::changed_namespaces: return nvme::page_bytes;
    default: return sizeof(nvme::health_log);
  }
}

}  // namespace

void pcie_controller::state::set_attached(u32 namespace_id, bool attached) {
  const std::lock_guard mine(turn);
  const std::string operation =
      (attached ? "attach" : "detach") + (" namespace " + std::to_string(namespace_id)) + (attached ? " to" : " from");
  if ((facts.controller.admin_commands & nvme::optional_command::namespace_management) == 0) {
    throw_bad_input(operation, object(), "it does not manage namespaces (OACS bit 3): use what it has");
  }
  nvme::controller_list list;
  list.count = 1;
  list.ids[0] = facts.controller.controller_id;
  std::memcpy(page.data(), &list, sizeof list);
  ask(operation, nvme::attach_namespace(attached, namespace_id, reinterpret_cast<u64>(page.data())));
  list_namespaces();
}

void pcie_controller::state::check_wanted() const {
  if (!function.removal_requested()) return;
  throw_os_error("attach", object(), ENODEV, "the machine asks for the device back: end what is under way, and let go of it");
}

bool pcie_controller::state::needs_reset() { return stopped || admin.failed() || registers.look() != life::ready; }

void pcie_controller::state::check_reach(void const* memory, u64 bytes, std::string const& what) const {
  if (function.reaches(memory, bytes)) return;
  throw_bad_input("attach", what + " of " + object(),
                  "the device does not reach that memory: allocate it from the function's own (pci_function::memory)");
}

void pcie_controller::state::create_queue(queue_rings const& rings) {
  const std::lock_guard mine(turn);
  if (needs_reset()) bring_back();
  hurry.erase(rings.id);  // of one that was not taken back
  const std::string operation = "create queue " + std::to_string(rings.id) + " of";
  pcie_queue::places at;
  at.in_registers = !host_tells();
  if (facts.shadow_doorbells) at.submission = shadows->of(rings.id, false), at.completion = shadows->of(rings.id, true);
  std::optional<u64> part;  // of the controller's memory
  if (facts.controller_memory != 0) part = own_memory.allocate(rings.sq_entries * sizeof *rings.sq);
  if (part) at.ring = {&own_memory, *part};
  const u64 submission_ring = part ? own_memory.address(*part) : reinterpret_cast<u64>(rings.sq);
  const auto let_go = [this, id = rings.id, made_in = life.current.load(), part] { return delete_queue(id, made_in, part); };
  bool half_made = false;
  try {
    ask(operation, nvme::create_completion_queue(rings.id, rings.cq_entries, reinterpret_cast<u64>(rings.cq)));
    half_made = true;
    ask(operation, nvme::create_submission_queue(rings.id, rings.sq_entries, submission_ring));
    table.attach(rings.id, std::make_shared<pcie_queue>(rings, registers, life, let_go, at));
  } catch (error const&) {
    if (part) own_memory.free(*part);  // given to nobody else: the turn is ours
    if (!half_made) throw;
    admin.run(nvme::delete_queue(nvme::admin_opcode::delete_submission_queue, rings.id));
    if (!admin.run(nvme::delete_queue(nvme::admin_opcode::delete_completion_queue, rings.id)).outcome.ok()) stop();
    throw;
  }
}

/// Deleting a submission queue ends its commands first (base specification 2.0, section 5.6), so that nothing is written any
/// more once both are gone. A controller that does not delete them is stopped. A queue that was made in a former life is gone
/// already, and its number and its part of the controller's memory may be another's.
bool pcie_controller::state::delete_queue(u16 id, u64 made_in, std::optional<u64> part) {
  const std::lock_guard mine(turn);
  const u64 patience_ns = hurry.contains(id) ? hurry.extract(id).mapped() : options.admin_timeout_ns;
  if (stopped || life.current.load() != made_in) return true;
  // However long the first one takes, the second one has time to be answered.
  const u64 second_ns = std::min(least_delete_ns, patience_ns / 2);
  const backoff first(patience_ns - second_ns), both(patience_ns);
  const auto deleted = [&](nvme::admin_opcode which, backoff const& time) {
    return admin.run(nvme::delete_queue(which, id), std::max(left(time), u64{1})).outcome.ok();
  };
  if (registers.look() == life::ready && deleted(nvme::admin_opcode::delete_submission_queue, first) &&
      deleted(nvme::admin_opcode::delete_completion_queue, both)) {
    if (part) own_memory.free(*part);
    return true;
  }
  try {
    stop();
    return true;
  } catch (error const&) {
    return false;  // it may go on writing
  }
}

bool pcie_controller::state::abort(u16 queue, u16 command_id, u64 patience_ns) {
  backoff time(patience_ns);
  std::unique_lock mine(turn, std::try_to_lock);
  while (!mine.owns_lock() && left(time) >= least_abort_ns) {
    time.pause();
    mine.try_lock();
  }
  const u64 left_ns = left(time);
  if (!mine.owns_lock() || left_ns < least_abort_ns || needs_reset()) return false;
  ++aborts;
  const admin_answer answer = admin.run(nvme::abort_command(queue, command_id), left_ns);
  const bool ended = answer.outcome.ok() && nvme::was_aborted(answer.result);
  aborted += ended ? 1 : 0;
  return ended;
}

pcie_controller::pcie_controller(pci_function& function, pcie_options const& options) {
  if (options.queues == 0 || options.queues > 0xfffe) {
    throw_bad_input("open", "NVMe controller " + function.name(), "ask for 1 to 65534 queues");
  }
  state_ = std::make_unique<state>(function, options);
  try {
    state_->bring_up();
  } catch (...) {
    try {
      state_->stop();
      state_->own_memory.turn_off(function, state_->registers.capabilities());
    } catch (error const&) {
      controllers::keep_for_ever(std::move(state_));
    }
    throw;
  }
}

pcie_controller::~pcie_controller() {
  state_->table.close();
  const std::lock_guard mine(state_->turn);
  state_->registers.shut_down(state_->options.shutdown_timeout_ns);
  try {
    state_->stop();
    state_->own_memory.turn_off(state_->function, state_->registers.capabilities());
  } catch (error const&) {
    controllers::keep_for_ever(std::move(state_));  // for the device may still write its rings
  }
}

void pcie_controller::attach(queue_rings const& rings) {
  controllers::check_rings(rings, limits());
  state_->check_wanted();
  if (rings.id == 0) {
    const std::lock_guard mine(state_->turn);
    if (state_->needs_reset()) state_->bring_back();
    return state_->table.attach(0, std::make_shared<admin_stand_in>(rings, state_->function, state_->admin, state_->life));
  }
  const std::string what = "queue " + std::to_string(rings.id);
  if (state_->table.in_use(rings.id)) throw_bad_input("attach", what, "the identifier is in use: detach that queue first");
  state_->check_reach(rings.sq, rings.sq_entries * sizeof *rings.sq, what);
  state_->check_reach(rings.cq, rings.cq_entries * sizeof *rings.cq, what);
  state_->create_queue(rings);
}

void pcie_controller::detach(u16 queue) { state_->table.detach(queue); }

void pcie_controller::detach_soon(u16 queue, u64 patience_ns) {
  {
    const std::lock_guard mine(state_->turn);
    if (state_->table.in_use(queue)) state_->hurry[queue] = patience_ns;
  }
  state_->table.detach(queue);
  const std::lock_guard mine(state_->turn);
  state_->hurry.erase(queue);  // a queue of a former life is not deleted
}

/// Queue 0 is a stand-in, whose identifiers are not those of the controller's admin queue.
bool pcie_controller::abort(u16 queue, u16 command_id, u64 patience_ns) {
  return queue != 0 && state_->abort(queue, command_id, patience_ns);
}

bool pcie_controller::failed() { return state_->admin.failed(); }

void pcie_controller::poll(u16 queue) { state_->table.poll(queue); }

void pcie_controller::add_buffer(void* memory, u64 bytes) { state_->check_reach(memory, bytes, "a buffer"); }

controller_limits pcie_controller::limits() const {
  const std::lock_guard mine(state_->turn);  // a reset asks for them anew
  return state_->limits;
}

queue_registers pcie_controller::registers_of(u16 queue) const {
  std::byte* const base = state_->options.registers_for_kernels;
  if (base == nullptr || queue == 0) return {};
  const auto at = [&](bool completion) {
    return reinterpret_cast<u32*>(base + state_->registers.capabilities().doorbell(queue, completion));
  };
  return {at(false), at(true)};
}

std::string pcie_controller::engine() const { return "pcie"; }

std::string pcie_controller::name() const { return state_->function.name(); }

pcie_facts const& pcie_controller::facts() const { return state_->facts; }

std::vector<u32> pcie_controller::namespaces() const {
  const std::lock_guard mine(state_->turn);
  return state_->facts.namespaces;
}

pcie_counts pcie_controller::counts() const {
  const std::lock_guard mine(state_->turn);
  return {state_->resets,
          state_->admin.commands(),
          state_->admin.strays(),
          state_->life.refused_doorbells.load(relaxed),
          state_->life.doorbells.load(relaxed),
          state_->life.spared_doorbells.load(relaxed),
          state_->aborts,
          state_->aborted};
}

nvme::health_log pcie_controller::health() {
  const std::lock_guard mine(state_->turn);
  return state_->fetch<nvme::health_log>(
      "read the health log of",
      nvme::get_log_page(nvme::log_page::health, sizeof(nvme::health_log), reinterpret_cast<u64>(state_->page.data())));
}

std::optional<nvme::asynchronous_event> pcie_controller::take_event() {
  const std::lock_guard mine(state_->turn);
  const auto event = state_->admin.take_event();
  if (!event.has_value()) return event;
  try {
    const admin_answer answer = state_->admin.run(
        nvme::get_log_page(event->page(), log_bytes(event->page()), reinterpret_cast<u64>(state_->page.data())));
    // A page that the controller refuses would be refused again.
    if (!answer.outcome.ok() && answer.outcome.domain != status_domain::nvme)
      throw_status("read a log page of", state_->object(), answer.outcome);
    if (event->is(nvme::event_type::notice) && event->information() == nvme::namespaces_changed) state_->list_namespaces();
  } catch (error const&) {
    state_->admin.put_back(*event);
    throw;
  }
  return event;
}

void pcie_controller::attach_namespace(u32 namespace_id) { state_->set_attached(namespace_id, true); }

void pcie_controller::detach_namespace(u32 namespace_id) { state_->set_attached(namespace_id, false); }

bool pcie_controller::removal_requested() { return state_->function.removal_requested(); }

void pcie_controller::reset() {
  const std::lock_guard mine(state_->turn);
  state_->bring_back();
}

}  // namespace penstock
