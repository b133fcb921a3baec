// Blocks of a namespace, read and written by the threads of a kernel without a cache: commands go from a thread to the
// controller and data to where the thread says. For programs that know their blocks, and for measuring what lies under the
// cache.
//
//   block_request& mine = requests[thread];                 // in memory that the kernel's threads share; one command at a time
//   submit_blocks(g, device, nvme::opcode::read, true, mine, lba{7}, 1, address);
//   ...                                                     // other work
//   status outcome = wait_blocks(g, device, true, mine);
//
// `read_blocks` and `write_blocks` are the two at once; what was written is on the device for good after `flush_blocks`. All
// are collective: the commands of a group go out together, and it
// waits once for all of them.
#pragma once

#include "penstock/group/warp.hpp"
#include "penstock/nvme/prp.hpp"
#include "penstock/queue/read_barrier.hpp"
#include "penstock/queue/result_sink.hpp"

namespace penstock {

/// One command in flight. Outlives the wait; not copied meanwhile. Aligned to its list, which must not cross a page: a
/// controller takes the last entry of a page for the address of the rest of the list.
struct alignas(prp_list_stride) block_request {
  u64 list[prp_list_stride / sizeof(u64)];  ///< PRP list of transfers of more than two pages
  u32 result = 0;                           ///< see result_sink
  u32 slot = 0;
  u32 queue = 0;
  u32 refused = 0;  ///< packed status of a command that was not submitted
  u32 reads = 0;    ///< 1: data come from the device, behind a barrier
};

/// A namespace and the queue pairs that lead to it. Trivially copyable; the host-side `block_device` owns what it points at.
struct block_device_view {
  queue_pair_view<result_sink> const* queues = nullptr;
  u32 queues_count = 0;
  u32 namespace_id = 0;
  u32 block_shift = 9;
  u32 most_blocks = 0;          ///< of one command
  u32 most_zero_blocks = 0;     ///< of one Write Zeroes; 0: the controller has no such command
  u32 most_discard_blocks = 0;  ///< of one deallocation; likewise
  u64 blocks = 0;
  read_barrier* barrier = nullptr;  ///< null: a completion says by itself that its data are there
};

namespace block_io {

PENSTOCK_FN inline u32 most_blocks(block_device_view const& device, nvme::opcode op) {
  switch (op) {
    case nvme::opcode::write_zeroes: return device.most_zero_blocks;
    case nvme::opcode::dataset_management: return device.most_discard_blocks;
    default: return device.most_blocks;
  }
}

/// What would be wrong with a command; ok for those that the device may see.
PENSTOCK_FN inline status check(block_device_view const& device, nvme::opcode op, lba start, u32 count) {
  const u32 most = most_blocks(device, op);
  if (most == 0) return {status_domain::nvme, nvme::code::invalid_opcode};
  const bool inside = count != 0 && count <= most && value(start) < device.blocks && count <= device.blocks - value(start);
  return inside ? status{} : make_status(failure::out_of_range);
}

/// Groups spread over the queues by where their requests lie, so that each stays with one.
PENSTOCK_FN inline u32 queue_of(block_device_view const& device, block_request const& leaders) {
  return static_cast<u32>(reinterpret_cast<u64>(&leaders) / (32 * sizeof(block_request))) % device.queues_count;
}

}  // namespace block_io

/// Sends one command for each lane that wants one: `count` blocks from `start` on, to or from `address` (aligned to 4, in
/// memory that the controller reaches); a flush has neither, and what zeroes or deallocates has no address. Collective. Returns
/// when all are with the controller; wait_blocks reports what was refused.
template <thread_group G>
PENSTOCK_COLD void submit_blocks(G g, block_device_view const& device, nvme::opcode op, bool want, block_request& mine,
                                 lba start, u32 count, u64 address) {
  // The request of a lane that wants nothing may have a command in flight: it is left alone.
  const status wrong = op != nvme::opcode::flush ? block_io::check(device, op, start, count) : status{};
  const bool goes = want && wrong.ok();
  transfer t;
  t.command = nvme::flush_command(device.namespace_id);
  if (goes && op == nvme::opcode::write_zeroes) {
    t.command = nvme::transfer_command(op, device.namespace_id, start, count);
  } else if (goes && op == nvme::opcode::dataset_management) {
    // Its one range lies where the list of a transfer would.
    mine.list[0] = u64{count} << 32;
    mine.list[1] = value(start);
    t.command = nvme::deallocate_command(device.namespace_id, 1);
    t.bytes = sizeof(nvme::dataset_range);
    t.address = reinterpret_cast<u64>(mine.list);
    t.writes = true;
  } else if (goes && op != nvme::opcode::flush) {
    t.bytes = count << device.block_shift;
    t.command = nvme::transfer_command(op, device.namespace_id, start, count);
    t.address = address;
    t.writes = op == nvme::opcode::write;
    if (nvme::prp_list_entries(address, t.bytes) != 0) {
      nvme::write_prp_list(mine.list, address, t.bytes);
      t.prp_list = reinterpret_cast<u64>(mine.list);
    }
  }
  const u32 queue = static_cast<u32>(from_leader(g, block_io::queue_of(device, mine)));
  if (want) {
    mine.result = mine.slot = 0;  // the slot, so that the four words are one store
    mine.queue = queue;
    mine.refused = pack(wrong);
    if (device.barrier != nullptr) mine.reads = op == nvme::opcode::read ? 1 : 0;
  }
  // A copy: its fields come from the thread's own stack, which an acquire leaves in L1, and not from memory
  // (docs/MISS_PATH.md).
  const queue_pair_view<result_sink> here = device.queues[queue];
  const status sent = here.submit(g, goes, t, {&mine.result, &mine.slot});
  if (goes && !sent.ok()) mine.refused = pack(sent);
}

/// Waits for the commands of all lanes that have one, and moves their queues meanwhile. Collective. This lane's status:
/// failure::out_of_range for blocks that the device does not have or more than one command moves; failure::deadline.
template <thread_group G>
PENSTOCK_COLD status wait_blocks(G g, block_device_view const& device, bool want, block_request& mine) {
  status outcome = want ? unpack_status(mine.refused) : status{};
  auto left = g.ballot(want && outcome.ok());
  while (any(left)) {
    const u64 queue = g.shfl(mine.queue, lowest(left));
    const bool here = contains(left, g.rank()) && mine.queue == queue;
    const queue_pair_view<result_sink> its = device.queues[queue];  // a copy, as in submit_blocks
    const status s = wait_for(g, its, here, {&mine.result, &mine.slot});
    if (here) outcome = s;
    left = without(left, g.ballot(here));
  }
  if (device.barrier == nullptr) return outcome;
  const bool came = want && outcome.ok() && mine.reads != 0;
  const status behind = pass_barrier(g, device.queues, device.queues_count, *device.barrier, came);
  return came ? behind : outcome;
}

/// submit_blocks and wait_blocks. Collective.
template <thread_group G>
PENSTOCK_FN status read_blocks(G const& g, block_device_view const& device, bool want, block_request& mine, lba start,
                               u32 count, u64 address) {
  submit_blocks(g, device, nvme::opcode::read, want, mine, start, count, address);
  return wait_blocks(g, device, want, mine);
}

template <thread_group G>
PENSTOCK_FN status write_blocks(G const& g, block_device_view const& device, bool want, block_request& mine, lba start,
                                u32 count, u64 address) {
  submit_blocks(g, device, nvme::opcode::write, want, mine, start, count, address);
  return wait_blocks(g, device, want, mine);
}

/// Blocks read as zeros afterwards; no data moves. nvme's invalid_opcode where the controller does not offer that
/// (most_zero_blocks), and never reached it. Collective.
template <thread_group G>
PENSTOCK_FN status zero_blocks(G const& g, block_device_view const& device, bool want, block_request& mine, lba start,
                               u32 count) {
  submit_blocks(g, device, nvme::opcode::write_zeroes, want, mine, start, count, 0);
  return wait_blocks(g, device, want, mine);
}

/// Notifies the device that what blocks hold is wanted no more: what they read as afterwards is its choice, until they are
/// written. Likewise (most_discard_blocks). Collective.
template <thread_group G>
PENSTOCK_FN status discard_blocks(G const& g, block_device_view const& device, bool want, block_request& mine, lba start,
                                  u32 count) {
  submit_blocks(g, device, nvme::opcode::dataset_management, want, mine, start, count, 0);
  return wait_blocks(g, device, want, mine);
}

/// Returns when all that was written to the namespace before is on the device for good: writes that had ended, of any
/// submitter, when this was called (docs/DURABILITY.md says what each controller does). One lane's flush serves all.
/// Collective. This lane's status; after a failure nothing is known of what was written since the last flush that succeeded.
template <thread_group G>
PENSTOCK_FN status flush_blocks(G const& g, block_device_view const& device, bool want, block_request& mine) {
  submit_blocks(g, device, nvme::opcode::flush, want, mine, lba{0}, 0, 0);
  return wait_blocks(g, device, want, mine);
}

#if PENSTOCK_SEPARATE_DEVICE_CODE
extern template
    PENSTOCK_FN void submit_blocks(warp, block_device_view const&, nvme::opcode, bool, block_request&, lba, u32, u64);
extern template PENSTOCK_FN status wait_blocks(warp, block_device_view const&, bool, block_request&);
#endif
#if PENSTOCK_SEPARATE_HOST_CODE
extern template void submit_blocks(lone_thread, block_device_view const&, nvme::opcode, bool, block_request&, lba, u32, u64);
extern template status wait_blocks(lone_thread, block_device_view const&, bool, block_request&);
#endif

}  // namespace penstock
