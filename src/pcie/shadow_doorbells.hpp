// Doorbells that a controller reads in memory (base specification 2.0, section 5.8, "Doorbell Buffer Config"): the host stores
// them there, and in the register only where the controller's event index asks for it. For controllers to which a register
// costs much, as those of virtual machines do.
#pragma once

#include "penstock/executor/memory.hpp"
#include "penstock/nvme/registers.hpp"
#include "penstock/pcie/pci_function.hpp"

#include <atomic>

namespace penstock::pcie {

/// One doorbell there. A host thread stores it; the controller loads it when it wants to, and stores the event index.
class shadow_doorbell {
 public:
  shadow_doorbell() = default;
  shadow_doorbell(u32& value, u32& event) : value_(&value), event_(&event) {}

  bool there() const { return value_ != nullptr; }

  /// Stores the next value, and says whether the register must have it, too: the controller waits for one that is passed by
  /// this step. All that the value stands for is in memory before it.
  ///
  /// Either the controller sees this value when it looks once more after it has stored its event index, or this thread sees
  /// that index: of "store mine, then load the other's" on both sides, one comes first. That takes one order of all four, so
  /// these are the two operations of the driver that are sequentially consistent (tests/models/shadow_doorbell_relacy.cpp).
  bool tell(u32 next, u32 last) const {
    std::atomic_ref<u32>(*value_).store(next, std::memory_order_seq_cst);
    const u32 event = std::atomic_ref<u32>(*event_).load(std::memory_order_seq_cst);
    return passes(event, next, last);
  }

  /// Whether a step from `last` to `next` goes by `event`. All are positions of a ring, taken modulo 2^16 as the controller
  /// does.
  static constexpr bool passes(u32 event, u32 next, u32 last) {
    return static_cast<u16>(next - event - 1) < static_cast<u16>(next - last);
  }

 private:
  u32* value_ = nullptr;
  u32* event_ = nullptr;
};

/// Both pages. Thread-safe once it is made.
class shadow_doorbells {
 public:
  shadow_doorbells(pci_function& function, u64 stride);

  u64 values() const { return reinterpret_cast<u64>(values_.data()); }
  u64 events() const { return reinterpret_cast<u64>(events_.data()); }

  /// As on the first day. REQUIRES: the controller is disabled, or has not been told of the pages.
  void clear();

  /// The word for a doorbell of the admin queue, whose register is always written, too; null where it is beyond the page.
  u32* of_admin(bool completion) const;

  /// Of an I/O queue that is about to be made, as on its first day; not there for one whose number is beyond the page.
  shadow_doorbell of(u16 queue, bool completion) const;

 private:
  u64 stride_words_;
  buffer<u32> values_, events_;
};

}  // namespace penstock::pcie
