// Lanes of a CUDA warp: all 32, an aligned part of them (half and quarter warps: BaM dissertation 6.2.3), or the lanes that
// happen to be here. The mask is sampled once, at the API edge, and handed down.
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

#if defined(__CUDACC__)

// The functions carry both targets only so that templates over a thread_group may; a warp exists on the GPU alone.
#if PENSTOCK_ON_DEVICE
#define PENSTOCK_WARP(expression) return expression
#else
#define PENSTOCK_WARP(expression) __builtin_trap()
#endif

class warp {
 public:
  /// All 32 lanes. REQUIRES: the whole warp is converged here.
  PENSTOCK_FN static warp whole() { return warp(0xffffffffu); }

  /// The aligned part of `Width` lanes that this lane belongs to.
  template <u32 Width>
  PENSTOCK_FN static warp part() {
    static_assert(Width >= 1 && Width <= 32 && is_power_of_two(Width));
    if constexpr (Width == 32) {
      return whole();
    } else {
      return warp(((1u << Width) - 1u) << (lane() & ~(Width - 1)));
    }
  }

  /// The lanes that run together at this very point. Lanes that left earlier are not waited for.
  ///
  /// Two such groups of one warp may come together later, by chance. nvcc takes what __activemask() gives for the same in all
  /// lanes that are there then, which is thought to be why kernels that named such groups ended with an illegal address on
  /// H100s. What comes out of a shuffle it takes for each lane's own.
  PENSTOCK_FN static warp active() {
#if PENSTOCK_ON_DEVICE
    const u32 here = __activemask();
    return warp(__shfl_sync(here, here, static_cast<int>(lane())));
#else
    __builtin_trap();
#endif
  }

  /// The same for a vote at this point, and a call of a function that is not inlined behind it, and no more.
  PENSTOCK_FN static warp passing() { PENSTOCK_WARP(warp(__activemask())); }

  /// Lanes that a `lane_meeting` has brought together.
  PENSTOCK_FN static warp met(u32 lanes) { return warp(lanes); }

  PENSTOCK_FN u32 rank() const { return lane(); }
  PENSTOCK_FN lane_mask members() const { return mask_; }
  PENSTOCK_FN lane_mask match_any(u64 v) const { PENSTOCK_WARP(__match_any_sync(mask_, static_cast<unsigned long long>(v))); }
  PENSTOCK_FN lane_mask ballot(bool p) const { PENSTOCK_WARP(__ballot_sync(mask_, p)); }
  PENSTOCK_FN u64 shfl(u64 v, u32 rank) const {
    PENSTOCK_WARP(__shfl_sync(mask_, static_cast<unsigned long long>(v), static_cast<int>(rank)));
  }
  PENSTOCK_FN void sync() const {
#if PENSTOCK_ON_DEVICE
    __syncwarp(mask_);
#endif
  }

 private:
  PENSTOCK_FN explicit warp(lane_mask mask) : mask_(mask) {}

  PENSTOCK_FN static u32 lane() {
#if PENSTOCK_ON_DEVICE
    u32 id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
#else
    __builtin_trap();
#endif
  }

  lane_mask mask_;
};
static_assert(thread_group<warp>);

/// As for other groups, in fewer instructions.
PENSTOCK_FN inline bool any_of([[maybe_unused]] warp const& g, [[maybe_unused]] bool p) {
  PENSTOCK_WARP(__any_sync(g.members(), p) != 0);
}

#undef PENSTOCK_WARP
#endif

}  // namespace penstock
