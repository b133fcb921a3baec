// An NVMe drive, brought up and driven by this process (BaM, section 4.1): no kernel driver between the queues and the device.
//
// Commands go from the threads that submit them into rings that the device reads, and completions come back the same way; the
// doorbells are registers, and are forwarded from memory by the polling thread, or by `threads` of its own.
//
// A controller that answers no more, or wrongly, is reset: all its queues die with it, and each comes back when its host
// detaches and attaches it again (queue_pair::reset).
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/nvme/admin.hpp"
#include "penstock/nvme/registers.hpp"
#include "penstock/pcie/pci_function.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace penstock {

struct pcie_options {
  u32 queues = 64;                               ///< I/O queue pairs to ask the controller for; it may grant fewer
  u32 queue_entries = 0;                         ///< most entries of one ring; 0: as many as the controller takes
  u32 threads = 0;                               ///< that forward doorbells; 0: the polling thread does
  bool submission_in_controller = false;         ///< submission rings in the controller's memory, where it has some for them
  bool shadow_doorbells = false;                 ///< in memory, where the controller takes them: for drives of virtual machines
  std::byte* registers_for_kernels = nullptr;    ///< BAR 0 as kernels see it (drive_path.hpp), which then ring directly
  bool reaches_local = false;                    ///< the drive reaches the executor's local memory (likewise)
  u64 admin_timeout_ns = 5 * one_second_ns;      ///< of one admin command
  u64 shutdown_timeout_ns = 10 * one_second_ns;  ///< for the drive to write out what it caches, at the end
  u64 least_ready_ns = 500 * one_millisecond_ns;  ///< to turn on or off, for a controller whose CAP.TO says less
};

/// What a controller said of itself.
struct pcie_facts {
  nvme::capabilities capabilities;
  u32 version = 0;  ///< VS: major 31:16, minor 15:8, tertiary 7:0
  nvme::identify_controller controller;
  std::vector<u32> namespaces;  ///< active ones, ascending
  u32 granted_queues = 0;
  bool shadow_doorbells = false;  ///< it has been given some, and reads them
  u64 controller_memory = 0;      ///< bytes of its own, for submission rings; 0: none, or not asked for
};

/// What happened to it since it was opened.
struct pcie_counts {
  u64 resets = 0;  ///< of the controller, after the first bring-up
  u64 admin_commands = 0;
  u64 admin_strays = 0;       ///< admin completions that answer nothing that was asked
  u64 refused_doorbells = 0;  ///< values that no correct host writes; not forwarded
  u64 doorbells = 0;          ///< of I/O queues, stored in registers
  u64 spared_doorbells = 0;   ///< that the controller found in memory
  u64 aborts = 0;             ///< commands that it was asked to abort
  u64 aborted = 0;            ///< of them: that it says it has
};

class pcie_controller final : public controller {
 public:
  /// Brings the controller up, whatever state it is in. Throws penstock::error (world) that says which step it refused, or did
  /// not answer in CAP.TO; the function is then disabled again, if that can be. REQUIRES: the function outlives it, and nothing
  /// else drives it.
  explicit pcie_controller(pci_function& function, pcie_options const& options = {});
  /// Detaches what is attached, and shuts the controller down in order.
  ~pcie_controller() override;

  /// Queue 0 is a stand-in for the admin queue that answers Identify alone, from any memory. Others need memory that the device
  /// reaches. Resets the controller first if it has failed.
  void attach(queue_rings const& rings) override;
  /// Deletes the queues; resets the controller, and failing that the function, if it does not let go of them.
  void detach(u16 queue) override;
  /// The same, with that much time to delete the queue.
  void detach_soon(u16 queue, u64 patience_ns) override;
  /// An Abort command; one at a time, so within any Abort Command Limit. One that is not answered in time fails the controller,
  /// so none is begun with less than least_abort_ns left.
  bool abort(u16 queue, u16 command_id, u64 patience_ns) override;
  bool failed() override;
  void poll(u16 queue) override;
  /// Throws penstock::error (bad_input) for memory that the device does not reach.
  void add_buffer(void* memory, u64 bytes) override;
  controller_limits limits() const override;
  queue_registers registers_of(u16 queue) const override;
  std::string engine() const override;
  std::string name() const override;

  /// REQUIRES: no reset meanwhile, and so no attach, which may reset the controller; no take_event.
  pcie_facts const& facts() const;
  /// Active ones, ascending; whatever others do with the controller.
  std::vector<u32> namespaces() const;
  pcie_counts counts() const;

  /// The health log. Throws penstock::error (world).
  nvme::health_log health();

  /// The next event that the controller has reported, if any. Its log page has been read, so that the controller reports the
  /// next one of its kind, or refused; after a notice that namespaces have changed, facts().namespaces are those there are now.
  /// Throws penstock::error (world) where the controller does not answer; the event is then still the next.
  std::optional<nvme::asynchronous_event> take_event();

  /// Makes a namespace of the subsystem reachable through this controller, or no longer. Throws penstock::error: bad_input
  /// where the controller does not manage namespaces; world where it refuses.
  void attach_namespace(u32 namespace_id);
  void detach_namespace(u32 namespace_id);

  /// Whether the machine asks for the device back. From then on no queue is attached: end what is under way, flush it, and let
  /// go of the queues, of this (which shuts the controller down in order) and of its function, for which the kernel waits.
  bool removal_requested();

  /// Resets the controller: whatever it was doing ends without an answer, and its queues must be detached and attached again.
  /// Throws penstock::error (world) where it does not come back.
  void reset();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace penstock
