// The group that a call without one runs in: the lanes that are here on a GPU, the one thread on a CPU. Only the API edge asks.
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "penstock/group/warp.hpp"

namespace penstock {

#if PENSTOCK_ON_DEVICE
PENSTOCK_FN inline warp this_group() { return warp::active(); }
#else
PENSTOCK_FN inline lone_thread this_group() { return {}; }
#endif

}  // namespace penstock
