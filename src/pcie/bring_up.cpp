// Bring-up of a pcie_controller, the first time and after a reset, and what it finds out about the controller.
#include "pcie_controller_state.hpp"
#include "penstock/core/retry_policy.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace penstock {
namespace {

using namespace pcie;

constexpr u64 most_transfer = u64{1} << 20;
constexpr u32 most_queue_entries = 65536;
constexpr u32 most_events = 4;
constexpr u32 most_namespaces = 65536;  // more than any drive has
constexpr u32 notices_wanted = nvme::event_mask::namespaces | nvme::event_mask::firmware;
constexpr u32 namespaces_per_page = nvme::page_bytes / sizeof(u32);

std::string text(char const* field, u64 bytes) {
  std::string all(field, bytes);
  const u64 end = all.find_last_not_of(std::string_view(" \0", 2));
  return all.substr(0, end == std::string::npos ? 0 : end + 1);
}

}  // namespace

u32 pcie_controller::state::ask(std::string const& operation, nvme::submission_entry const& command) {
  admin_answer answer = admin.run(command);
  for (u32 attempts = 1; admin_retries.retries(answer.outcome, attempts); ++attempts) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(admin_retries.wait_ns(attempts)));
    answer = admin.run(command);
  }
  if (!answer.outcome.ok()) throw_status(operation, object(), answer.outcome);
  return answer.result;
}

/// When this returns, the device makes no access to memory.
void pcie_controller::state::stop() {
  const std::unique_lock gate(life.gate);
  try {
    registers.disable();
  } catch (error const&) {
    function.reset();
    registers.disable();
  }
  stopped = true;
  life.end();
}

void pcie_controller::state::bring_up() {
  stop();
  admin.start_over();
  const bool wants_memory = options.submission_in_controller && host_tells();
  const bool has_memory = wants_memory && own_memory.turn_on(function, registers.capabilities());
  if (!has_memory) own_memory.turn_off(function, registers.capabilities());
  facts.controller_memory = has_memory ? own_memory.bytes() : 0;
  limits.rings_in_controller = has_memory;
  limits.reaches_local = options.reaches_local;
  {
    const std::unique_lock gate(life.gate);
    registers.enable(admin.submission_ring(), admin.completion_ring(), admin_queue::entries);
  }
  look_at_controller();
  tell_of_shadows();
  ask_for_queues();
  list_namespaces();
  const u32 events = std::min(most_events, u32{facts.controller.event_limit} + 1);
  // A controller that tells of no events is as good a drive.
  const u32 wanted = nvme::event_mask::health | (facts.controller.optional_events & notices_wanted);
  if (admin.run(nvme::report_events(wanted)).outcome.ok()) admin.request_events(events);
  stopped = false;
}

void pcie_controller::state::look_at_controller() {
  const auto address = reinterpret_cast<u64>(page.data());
  const auto found =
      fetch<nvme::identify_controller>("identify", nvme::identify_command(nvme::identify_structure::controller, 0, address));
  const std::string before = text(facts.controller.serial_number, sizeof found.serial_number);
  const std::string now = text(found.serial_number, sizeof found.serial_number);
  if (facts.granted_queues != 0 && before != now) {
    throw_os_error("reset", object(), ENODEV, "it was drive " + before + " and is drive " + now + ": open it anew");
  }
  if ((found.submission_entry_size & 0xfu) > 6 || (found.completion_entry_size & 0xfu) > 4) {
    throw_os_error("open", object(), ENOTSUP, "it asks for queue entries larger than 64 and 16 bytes: Penstock has no others");
  }
  if (found.type == nvme::controller_type::discovery || found.type == nvme::controller_type::administrative) {
    throw_os_error("open", object(), ENOTSUP,
                   "it is no I/O controller (CNTRLTYPE " + std::to_string(static_cast<u32>(found.type)) +
                       "), so no command reaches blocks through it: open the drive's I/O controller");
  }
  facts.capabilities = registers.capabilities();
  facts.version = registers.version();
  facts.controller = found;
  const u64 least_page = u64{1} << facts.capabilities.least_page_shift();
  const u32 shift = found.max_transfer;
  limits.transfer_bytes = shift == 0 || shift > 20 ? most_transfer : std::min(most_transfer, least_page << shift);
  const u32 entries = std::min(facts.capabilities.queue_entries(), most_queue_entries);
  limits.ready_without_media = facts.capabilities.ready_without_media();
  limits.queue_entries = options.queue_entries == 0 ? entries : std::min(entries, options.queue_entries);
}

/// A controller that knows the command and refuses it is driven through its registers.
void pcie_controller::state::tell_of_shadows() {
  facts.shadow_doorbells = false;
  if (!options.shadow_doorbells || !host_tells() || (facts.controller.admin_commands & nvme::takes_doorbell_buffers) == 0)
    return;
  if (!shadows) shadows.emplace(function, facts.capabilities.doorbell_stride());
  shadows->clear();
  admin.mirror_doorbells(shadows->of_admin(false), shadows->of_admin(true));  // before it may read them
  facts.shadow_doorbells = admin.run(nvme::doorbell_buffer_config(shadows->values(), shadows->events())).outcome.ok();
  if (!facts.shadow_doorbells) admin.mirror_doorbells(nullptr, nullptr);
}

void pcie_controller::state::ask_for_queues() {
  facts.granted_queues = nvme::granted_queues(ask("ask for queues of", nvme::ask_for_queues(options.queues)));
  limits.queues = std::min(options.queues, facts.granted_queues);
}

void pcie_controller::state::list_namespaces() {
  struct list {
    u32 ids[namespaces_per_page];
  };
  facts.namespaces.clear();
  for (u32 after = 0;;) {
    const auto found = fetch<list>("list the namespaces of", nvme::identify_command(nvme::identify_structure::active_namespaces,
                                                                                    after, reinterpret_cast<u64>(page.data())));
    for (const u32 id : found.ids) {
      if (id == 0) return;
      if (id <= after)
        throw_os_error("list the namespaces of", object(), EPROTO, "the list does not ascend: replace the drive");
      facts.namespaces.push_back(after = id);
    }
    if (facts.namespaces.size() >= std::min(facts.controller.namespaces, most_namespaces)) return;
  }
}

/// Once more where the first time did not do: a function's own reset is what is left.
void pcie_controller::state::bring_back() {
  ++resets;
  try {
    bring_up();
  } catch (error const&) {
    if (registers.look() == life::gone) throw;
    function.reset();
    bring_up();
  }
}

}  // namespace penstock
