// The cold functions of the write path, and the launches of a flush and a discard. In this folder for its register cap.
#include "../runtime/write_back_bodies.hpp"

#include "penstock/array/write_slowly.hpp"

namespace penstock {

template PENSTOCK_FN changed_element change_slowly(warp, line_cache_view const&, u32, bool, u64, element_change);
template PENSTOCK_FN changed_element change_together(warp, lane_meeting*, u32, line_cache_view const&, u32, u64,
                                                     element_change);
template PENSTOCK_FN held_line pin_to_store(warp, line_cache_view const&, u32, line_id, bool);
template PENSTOCK_FN void unpin_stored(warp, line_cache_view const&, u32, u64*, bool);

}  // namespace penstock
