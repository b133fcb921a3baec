#include "cache_room.hpp"

#include <algorithm>
#include <bit>

namespace penstock {
namespace {

constexpr u32 least_cuda_depth = 64;
constexpr u32 commands_per_thread = 8;
// A command keeps its slot from the claim of its lines until somebody has retired it: some 70 us on a GPU beside a drive that
// takes 10. What that needs to keep several drives busy is thousands of small commands, or hundreds of large ones. Lines that
// are stored into here and there take a slot each: 130,000 adds to lines of 4 KiB took 130 ms with 64 slots, and 19 with 512.
constexpr u64 least_cuda_buffers = u64{32} << 20, most_cuda_buffers = u64{64} << 20;
constexpr u64 least_cuda_commands = 64, most_cuda_commands = 4096;
constexpr u64 most_command = 65536;  // what a PRP list of prp_list_stride bytes holds
constexpr u64 most_cuda_run = 32;    // lines: more of them are worth less than more commands

}  // namespace

ring_choice rings_for(executor const& on, cache_options const& options, u32 most_queues) {
  if (options.queues != 0) return {options.queues, options.queue_depth};
  const u32 queues = std::min(on.units(), std::max(1u, most_queues));
  if (on.kind() != executor_kind::cuda) return {queues, options.queue_depth};
  // No more is in flight than there are frames, and each entry of a ring may have a bounce buffer.
  const u64 frames = std::max<u64>(1, options.bytes / options.line_bytes / queues);
  const u64 enough = std::max<u64>(least_cuda_depth, std::bit_ceil(frames));
  return {queues, static_cast<u32>(std::min<u64>(options.queue_depth, enough))};
}

queue_options queue_options_for(executor const& on, cache_options const& cache, controller_limits const& limits) {
  const bool cuda = on.kind() == executor_kind::cuda, far = cuda && !limits.reaches_local;
  queue_options options;
  options.depth = cache.queue_depth;
  options.timeout_ns = cache.timeout_ns;
  options.poll_in_place = !cuda;
  options.rings = far ? memory_kind::shared : memory_kind::local;
  options.rings_on_host = far;
  options.bounce_bytes = far || cache.bounce ? static_cast<u32>(cache.line_bytes) : 0;
  return options;
}

write_room write_room_for(executor const& on, cache_options const& options, u64 frames, u64 transfer_bytes) {
  const bool cuda = on.kind() == executor_kind::cuda;
  const u64 line = options.line_bytes;
  const u64 command = std::min({options.write_back.command_bytes, most_command, transfer_bytes});
  const u64 run = std::max<u64>(1, std::min(command / line, cuda ? most_cuda_run : command));
  const u64 buffers = std::clamp(frames * line / 16, least_cuda_buffers, most_cuda_buffers);
  const u64 for_cuda = std::clamp(std::min(buffers / (run * line), frames / 4), least_cuda_commands, most_cuda_commands);
  write_room room;
  room.run_lines = static_cast<u32>(run);
  room.run_bytes = run * line;
  room.slots = options.write_back.commands != 0 ? options.write_back.commands
               : cuda                           ? static_cast<u32>(for_cuda)
                                                : commands_per_thread * on.units();
  return room;
}

u64 write_room::bytes() const {
  return slots * sizeof(write_slot) + entries() * sizeof(u64*) + buffer_bytes() + list_words() * sizeof(u64);
}

u64 transit_bytes_for(executor const& on, cache_options options, controller_limits const& limits, bool writable) {
  const ring_choice rings = rings_for(on, options, limits.queues);
  options.queue_depth = rings.depth;
  const u64 queue = queue_pair<line_sink>::metadata_bytes_for(queue_options_for(on, options, limits));
  const u64 frames = options.bytes / options.line_bytes;
  const u64 writes = writable ? write_room_for(on, options, frames, limits.transfer_bytes).bytes() : 0;
  return rings.queues * queue + writes;
}

}  // namespace penstock
