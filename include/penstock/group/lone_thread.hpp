// A group of one: a CPU thread, or a GPU thread that has lost its warp.
#pragma once

#include "penstock/group/thread_group.hpp"

namespace penstock {

struct lone_thread {
  PENSTOCK_FN u32 rank() const { return 0; }
  PENSTOCK_FN lane_mask members() const { return 1; }
  PENSTOCK_FN lane_mask match_any(u64) const { return 1; }
  PENSTOCK_FN lane_mask ballot(bool p) const { return p ? 1u : 0u; }
  PENSTOCK_FN u64 shfl(u64 v, u32) const { return v; }
  PENSTOCK_FN void sync() const {}
};
static_assert(thread_group<lone_thread>);

}  // namespace penstock
