// The store that notifies a controller of something new: a word of memory that a thread forwards, or a register of the device.
#pragma once

#include "penstock/core/memory_access.hpp"

namespace penstock {

/// What reads a doorbell.
enum class doorbell_kind : u8 {
  memory,           ///< a controller anywhere, in memory
  local_memory,     ///< threads of this GPU alone: a fence of its own scope is much cheaper
  device_register,  ///< a device: its register, mapped for this kernel
};

/// An observer of `value` there finds in memory what this thread stored or acquired before (`Order`: of a word). A GPU's store
/// to a register is an `mmio` one (PTX ISA, "st": performed once, not joined with others, in program order); the fence before
/// it puts whatever it stands for behind the memory's point of coherence, where the device reads.
template <auto Order = release>
PENSTOCK_FN void ring_doorbell(u32& doorbell, u32 value, [[maybe_unused]] doorbell_kind kind) {
#if PENSTOCK_ON_DEVICE
  if (kind == doorbell_kind::device_register) {
    fence_release_system();
    asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(&doorbell), "r"(value) : "memory");
    return;
  }
  if (kind == doorbell_kind::local_memory) return device_ref<u32>(doorbell).store(value, Order);
#endif
  system_ref<u32>(doorbell).store(value, Order);
}

/// The same by a thread that has been through order_before_telling() since.
PENSTOCK_FN inline void ring_doorbell_after_fence(u32& doorbell, u32 value, doorbell_kind kind) {
  if (kind == doorbell_kind::local_memory) return store_after_fence(doorbell, value);
  ring_doorbell(doorbell, value, kind);
}

/// Gives a lock back whose holder has rung a doorbell; the next holder's value replaces this one's, never the other way round.
/// Of a word in memory that follows from the lock's own order, at whatever scope both holders are in: stores to one word are
/// seen in the order in which they happen. A register is no such word: there the store must have left this GPU.
///
/// publish() is called behind the fence of the release, for what else is to be published then (add_after_fence).
template <class Publish>
PENSTOCK_FN void unlock_doorbell(u32& lock, doorbell_kind kind, Publish const& publish) {
  if (kind == doorbell_kind::device_register) {
    system_ref<u32>(lock).store(0, release);
    order_before_telling();
  } else {
    order_before_telling();
    store_after_fence(lock, 0u);
  }
  publish();
}
PENSTOCK_FN inline void unlock_doorbell(u32& lock, doorbell_kind kind) {
  unlock_doorbell(lock, kind, [] {});
}

}  // namespace penstock
