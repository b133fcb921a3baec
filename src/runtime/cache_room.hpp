// What a cache makes room for beside its frames, worked out from its options alone: for the cache, and for who asks beforehand.
#pragma once

#include "penstock/runtime/line_cache.hpp"

namespace penstock {

/// The queue pairs with one controller, which has at most `most_queues`. Where the options leave their number open: one per CPU
/// thread, or multiprocessor, whose warps share it.
struct ring_choice {
  u32 queues = 0, depth = 0;
};
ring_choice rings_for(executor const& on, cache_options const& options, u32 most_queues);
queue_options queue_options_for(executor const& on, cache_options const& options, controller_limits const& limits);

/// Of the write side.
struct write_room {
  u32 run_lines = 0;  ///< most lines of one command
  u32 slots = 0;      ///< commands on their way
  u64 run_bytes = 0;  ///< of a slot's buffer

  static constexpr u64 words_per_list = prp_list_stride / sizeof(u64);
  u64 entries() const { return u64{2} * run_lines * slots; }
  u64 buffer_bytes() const { return slots * run_bytes; }
  u64 list_words() const { return slots * words_per_list; }
  u64 bytes() const;
};

/// `transfer_bytes`: most of one command of its controllers.
write_room write_room_for(executor const& on, cache_options const& options, u64 frames, u64 transfer_bytes);

}  // namespace penstock
