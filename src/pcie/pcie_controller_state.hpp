// What a pcie_controller owns: bring_up.cpp brings the controller up, pcie_controller.cpp has its queues and calls.
#pragma once

#include "../controller/queue_table.hpp"
#include "admin_queue.hpp"
#include "controller_memory.hpp"
#include "controller_registers.hpp"
#include "lives.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "shadow_doorbells.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace penstock {

struct pcie_controller::state {
  state(pci_function& at, pcie_options const& wanted)
      : function(at), options(wanted), registers(at, wanted.least_ready_ns), admin(at, registers, wanted.admin_timeout_ns),
        page(at.memory(), memory_kind::shared, nvme::page_bytes), table(wanted.queues, wanted.threads) {}

  std::string object() const { return "NVMe controller " + function.name(); }

  // Bring-up ------------------------------------------------------------------------------------------------------------------

  void stop();
  void bring_up();
  void bring_back();
  void look_at_controller();
  void list_namespaces();
  void ask_for_queues();
  void tell_of_shadows();
  /// Of new commands: what kernels tell by themselves, they tell registers, and nobody copies.
  bool host_tells() const { return options.registers_for_kernels == nullptr; }
  void set_attached(u32 namespace_id, bool attached);
  void check_wanted() const;

  u32 ask(std::string const& operation, nvme::submission_entry const& command);
  template <class Structure>
  Structure fetch(std::string const& operation, nvme::submission_entry const& command);

  // Queues --------------------------------------------------------------------------------------------------------------------

  void create_queue(queue_rings const& rings);
  bool delete_queue(u16 id, u64 made_in, std::optional<u64> part);
  bool abort(u16 queue, u16 command_id, u64 patience_ns);
  bool needs_reset();
  void check_reach(void const* memory, u64 bytes, std::string const& what) const;

  pci_function& function;
  pcie_options options;
  pcie::controller_registers registers;
  pcie::admin_queue admin;
  buffer<std::byte> page;  ///< where the device writes what the driver asks for
  std::optional<pcie::shadow_doorbells> shadows;
  pcie::controller_memory own_memory;
  pcie_facts facts;
  controller_limits limits;
  std::mutex turn;  ///< of who asks the admin queue, or turns the controller on or off
  pcie::lives life;
  bool stopped = true;  ///< disabled, or never got up
  u64 resets = 0, aborts = 0, aborted = 0;
  std::map<u16, u64> hurry;        ///< queues that are taken back soon, and how long that may take
  controllers::queue_table table;  ///< last: its threads use all of the above
};

template <class Structure>
Structure pcie_controller::state::fetch(std::string const& operation, nvme::submission_entry const& command) {
  ask(operation, command);
  Structure answer;
  std::memcpy(&answer, page.data(), sizeof answer);
  return answer;
}

}  // namespace penstock
