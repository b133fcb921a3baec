// What threads of the CPU executor call rather than inline, as read_slowly.cu and its neighbours have it for warps: compiled
// once instead of in every source that reads an array.
#include "penstock/array/write_slowly.hpp"
#include "penstock/coalesce/bring_lines.hpp"
#include "penstock/queue/block_io.hpp"

namespace penstock {

template found_line find_in_sets(directory_view const&, u64);
template piece16 read_slowly(lone_thread, line_cache_view const&, u32, bool, u64, u32);
template piece16 read_together(lone_thread, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
template read_piece try_read_slowly(lone_thread, line_cache_view const&, u32, bool, u64, u32);
template read_piece try_read_together(lone_thread, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
template held_line pin_slowly(lone_thread, line_cache_view const&, u32, line_id);
template bool prefetch_line(lone_thread, line_cache_view const&, u32, bool, line_id, fill_purpose);
template void bring_lines(lone_thread, line_cache_view const&, u32, bool, line_id, bring_step, u64);

template changed_element change_slowly(lone_thread, line_cache_view const&, u32, bool, u64, element_change);
template changed_element change_together(lone_thread, lane_meeting*, u32, line_cache_view const&, u32, u64, element_change);
template held_line pin_to_store(lone_thread, line_cache_view const&, u32, line_id, bool);
template void unpin_stored(lone_thread, line_cache_view const&, u32, u64*, bool);

template void submit_blocks(lone_thread, block_device_view const&, nvme::opcode, bool, block_request&, lba, u32, u64);
template status wait_blocks(lone_thread, block_device_view const&, bool, block_request&);

}  // namespace penstock
