// Memory of the controller's own (the controller memory buffer, base specification 2.0, section 8.5), for submission rings: the
// host stores commands where the controller has them, and it fetches nothing over the link. Reached behind another BAR.
#pragma once

#include "penstock/nvme/registers.hpp"
#include "penstock/nvme/wire.hpp"
#include "penstock/pcie/pci_function.hpp"

#include <map>
#include <mutex>
#include <optional>

namespace penstock::pcie {

/// Thread-safe.
class controller_memory {
 public:
  /// Turns it on; false where the controller has none for submission queues, or the host does not reach all of it: it is then
  /// to be turned off. To be called at each bring-up: a reset of the controller leaves the register as it is, one of the
  /// function clears it. REQUIRES: the controller is disabled.
  bool turn_on(pci_function& function, nvme::capabilities const& capabilities);
  /// Where somebody has turned it on, before this driver or through it. REQUIRES: the controller is disabled.
  void turn_off(pci_function& function, nvme::capabilities const& capabilities);

  u64 bytes() const { return bytes_; }

  /// A part of it, as an offset, in pages. Nothing where no part is so large and free.
  std::optional<u64> allocate(u64 bytes);
  void free(u64 offset);

  /// What the controller calls it.
  u64 address(u64 offset) const { return base + offset; }

  /// False where the function is gone.
  bool write(u64 offset, void const* from, u64 bytes) const {
    return function_->write_memory(bar_, begin_ + offset, from, bytes);
  }

 private:
  /// For the controller alone: beyond all memory of hosts that drives are plugged into, and within what 52 bits address.
  static constexpr u64 base = u64{1} << 51;

  pci_function* function_ = nullptr;
  u32 bar_ = 0;
  u64 begin_ = 0;  ///< in the BAR
  u64 bytes_ = 0;
  std::mutex mutex_;
  std::map<u64, u64> taken_;  ///< bytes by offset
};

/// A submission ring there, and the host's own, which those who submit write: the driver copies what is new.
struct ring_copy {
  controller_memory* memory = nullptr;
  u64 offset = 0;

  bool there() const { return memory != nullptr; }

  /// Copies the entries from `first` up to `end` of a ring; true if they arrived.
  bool tell(nvme::submission_entry const* ring, u32 entries, u32 first, u32 end) const;
};

}  // namespace penstock::pcie
