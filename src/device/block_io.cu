// Raw commands by warps, compiled by themselves: see read_slowly.cu. They are no cold path, so their cap is what `launch` gives
// a kernel.
#include "penstock/queue/block_io.hpp"

namespace penstock {

template PENSTOCK_FN void submit_blocks(warp, block_device_view const&, nvme::opcode, bool, block_request&, lba, u32, u64);
template PENSTOCK_FN status wait_blocks(warp, block_device_view const&, bool, block_request&);

}  // namespace penstock
