// Turns a controller on and off through its registers (base specification 2.0, sections 3.5 and 3.6). Every wait ends with
// CAP.TO, but for that of a shutdown.
#pragma once

#include "penstock/nvme/registers.hpp"
#include "penstock/pcie/pci_function.hpp"

namespace penstock::pcie {

/// What the registers say of the controller now.
enum class life {
  disabled,
  starting,  ///< enabled and not ready yet, or disabled and still ready
  ready,
  fatal,  ///< CSTS.CFS: only a reset brings it back
  gone,   ///< all ones: unplugged, or its memory space is off
};

/// As thread-safe as its function; one thread at a time turns it on or off.
class controller_registers {
 public:
  /// Throws penstock::error (world) for a controller that is not there, or that Penstock cannot drive.
  controller_registers(pci_function& function, u64 least_ready_ns);

  nvme::capabilities const& capabilities() const { return capabilities_; }
  u32 version() const { return version_; }
  std::string name() const { return function_.name(); }

  life look();

  /// Stops the controller: it makes no access to memory afterwards. Throws (world) when it does not let go in CAP.TO. A
  /// function that is gone has stopped.
  void disable();

  /// Starts it with admin rings of `entries` each. Throws (world) when it is not ready in CAP.TO, or fails.
  /// REQUIRES: disabled.
  void enable(u64 submission_ring, u64 completion_ring, u32 entries);

  /// Tells it to put everything away, and stops it. False if it did not say in time that it had: what its caches take to be
  /// written out is not in CAP.TO.
  bool shut_down(u64 timeout_ns) noexcept;

  void ring(u16 queue, bool completion, u32 value) { function_.write(capabilities_.doorbell(queue, completion), value); }

 private:
  life look(u32 status);
  u64 read64(u64 offset);
  void write64(u64 offset, u64 value);
  bool wait_until(life wanted, u64 timeout_ns);
  u64 timeout_ns() const;
  [[noreturn]] void refuse(std::string const& operation, int code, std::string const& remedy) const;

  pci_function& function_;
  u64 least_ready_ns_;
  nvme::capabilities capabilities_;
  u32 version_ = 0;
};

}  // namespace penstock::pcie
