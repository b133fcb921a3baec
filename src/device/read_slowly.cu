// The cold functions of the read path, compiled by themselves with a register cap (cmake/penstock_cuda.cmake), so that a kernel
// that reads through a cache needs hardly more registers than its own.
#include "penstock/array/read_slowly.hpp"
#include "penstock/coalesce/bring_lines.hpp"

namespace penstock {

template PENSTOCK_FN found_line find_in_sets(directory_view const&, u64);
template PENSTOCK_FN piece16 read_slowly(warp, line_cache_view const&, u32, bool, u64, u32);
template PENSTOCK_FN piece16 read_together(warp, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
template PENSTOCK_FN read_piece try_read_slowly(warp, line_cache_view const&, u32, bool, u64, u32);
template PENSTOCK_FN read_piece try_read_together(warp, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
template PENSTOCK_FN held_line pin_slowly(warp, line_cache_view const&, u32, line_id);
template PENSTOCK_FN void bring_lines(warp, line_cache_view const&, u32, bool, line_id, bring_step, u64);
template PENSTOCK_FN bool prefetch_line(warp, line_cache_view const&, u32, bool, line_id, fill_purpose);

}  // namespace penstock
