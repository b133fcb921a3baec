// The store that tells a controller of something new: a word of memory that somebody forwards, or a register of the device.
#pragma once

#include "penstock/core/atomic.hpp"

namespace penstock {

/// Whoever sees `value` there finds in memory what this thread stored or acquired before (`Order`: of a word). `is_register`:
/// of a device, mapped for this kernel. A GPU's store to it is an `mmio` one (PTX ISA, "st": performed once, not joined with
/// others, in program order); the fence before it puts whatever it stands for behind the memory's point of coherence, where the
/// device reads.
template <auto Order = release>
PENSTOCK_FN void ring_doorbell(u32& doorbell, u32 value, [[maybe_unused]] bool is_register) {
#if PENSTOCK_ON_DEVICE
  if (is_register) {
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
    asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(&doorbell), "r"(value) : "memory");
    return;
  }
#endif
  system_ref<u32>(doorbell).store(value, Order);
}

}  // namespace penstock
