// The group that a call without one runs in: the lanes that are here on a GPU, the one thread on a CPU. `passing_group` is for
// one vote and one call (warp::passing).
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "penstock/group/warp.hpp"

namespace penstock {

#if PENSTOCK_ON_DEVICE
PENSTOCK_FN inline warp this_group() { return warp::active(); }
PENSTOCK_FN inline warp passing_group() { return warp::passing(); }
#else
PENSTOCK_FN inline lone_thread this_group() { return {}; }
PENSTOCK_FN inline lone_thread passing_group() { return {}; }
#endif

}  // namespace penstock
